"""Wrong paths: whatever is given instead of a file, one sentence tells it and another what to do."""

from pathlib import Path
from typing import Any

import pytest

READERS = [
    "inspect",
    "hits",
    "plan",
    "reconstruct",
    "plot",
    "phase",
    "validate",
    "report",
    "weather",
    "replay",
]
WRONG = ["absent.h5", "folder", "empty.h5", "words.h5", "half.h5", "words.h5/inside.h5"]


@pytest.fixture
def wrong_files(run: Any) -> None:
    """In the current folder: an empty folder, an empty file, a text, and the first half of a file."""
    made = run("simulate", "sphere", "--frames", 2, "--set", "detector.pixels=8", "--out", "whole.h5")
    assert made.status == 0, made.errors
    Path("folder").mkdir()
    Path("empty.h5").touch()
    Path("words.h5").write_text("no frames\n")
    whole = Path("whole.h5").read_bytes()
    Path("half.h5").write_bytes(whole[: len(whole) // 2])


@pytest.mark.usefixtures("wrong_files")
def test_whatever_is_no_file_of_this_kind_is_told_with_what_to_do(run: Any) -> None:
    lines = [[command, wrong] for command in READERS for wrong in WRONG]
    lines += [["convert", wrong, "out.h5"] for wrong in WRONG]
    lines += [["simulate", wrong] for wrong in WRONG]
    lines += [["inspect", "whole.h5", "--geometry", wrong] for wrong in WRONG]
    for line in lines:
        told = run(*line)
        words = told.errors.strip().splitlines()
        assert told.status == 1, line
        assert len(words) == 2, (line, words)
        assert line[-1 if line[0] != "convert" else 1] in words[0], (line, words)
        assert "defect" not in told.errors, line


@pytest.mark.usefixtures("wrong_files")
@pytest.mark.parametrize("out", ["folder", "absent/out.h5", "words.h5/out.h5"])
@pytest.mark.parametrize(
    "line",
    [
        ["simulate", "sphere", "--frames", 2, "--set", "detector.pixels=8", "--out"],
        ["hits", "whole.h5", "--no-find", "--out"],
        ["convert", "whole.h5"],
        ["rotations", "--level", 1, "--out"],
        ["settings", "--out"],
    ],
    ids=lambda line: str(line[0]),
)
def test_what_cannot_be_written_is_told_before_any_work_is_lost(run: Any, line: list[Any], out: str) -> None:
    for further in ([], ["--overwrite"]):
        told = run(*line, out, *further)
        assert told.status == 1
        assert out in told.errors
        assert len(told.errors.strip().splitlines()) == 2
    assert Path("folder").is_dir()
    assert Path("words.h5").read_text() == "no frames\n"


@pytest.mark.usefixtures("wrong_files")
@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["reconstruct", "whoel.h5"], "whole.h5"),
        (["inspect", "whole.h5", "--geometry", "whoel.h5"], "whole.h5"),
        (["reconstruct", "whole.h5", "--settings", "rnu.toml"], "run.toml"),
        (["phase", "foldre"], "folder"),
        (["status", "foldre"], "folder"),
        (["weather", "foldre"], "folder"),
    ],
)
def test_a_path_that_is_nearly_right_is_answered_with_the_right_one(
    run: Any, line: list[str], meant: str
) -> None:
    Path("run.toml").touch()
    told = run(*line)
    assert told.status == 1
    assert f"Did you mean {meant}?" in told.errors
