"""A user's function decides by small data."""

import sys
from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.stream.filtering import load_filter

CODE = """
import numpy as np
def bright(columns):
    return columns["pulse_energy_J"] > 0.5
def even(columns):
    return columns["event_id"] % 2 == 0
def wrong(columns):
    return np.ones(3)
def fails(columns):
    return 1 / 0
number = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CODE)
    return tmp_path / "mine.py"


def test_a_function_of_a_file_or_module_chooses_events(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"pulse_energy_J": np.array([0.2, 0.7, 0.9])}
    assert load_filter(f"{file}:bright")(columns).tolist() == [False, True, True]
    monkeypatch.syspath_prepend(str(file.parent))
    assert load_filter("mine:even")(columns, np.arange(3, dtype=np.uint64)).tolist() == [True, False, True]
    sys.modules.pop("mine")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}:wrong", "expected bool of \\(2,\\)"),
        ("{}:fails", "ZeroDivisionError"),
        ("{}:bright", "no column 'pulse_energy_J'"),
    ],
)
def test_a_filter_that_goes_wrong_says_how(file: Path, text: str, words: str) -> None:
    chosen = load_filter(text.format(file))
    with pytest.raises(OrienteerError, match=words):
        chosen({"time_s": np.zeros(2)})


@pytest.mark.parametrize("text", ["{}:number", "{}:missing", "{}", "no_module:f", "missing.py:f", "a:b c"])
def test_a_filter_that_is_not_there_is_an_error_in_words(file: Path, text: str) -> None:
    with pytest.raises(OrienteerError, match="filter"):
        load_filter(text.format(file))
