"""Settings in a file: every value comes back, and a difference is named."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orienteer.run.settings import Settings
from orienteer.run.settings_file import (
    hash_settings,
    read_settings,
    settings_differences,
    settings_tree,
    write_settings,
)
from orienteer.simulation.settings import SimulateSettings

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
numbers = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts)
values = st.one_of(numbers, st.lists(numbers, max_size=3))


@given(st.dictionaries(texts, values, max_size=4))
def test_any_value_survives(tmp_path_factory: pytest.TempPathFactory, section: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    tree = {"emc": {**section, "inner table": section}}
    write_settings(path, tree)
    read = read_settings(path)
    assert read == tree
    assert settings_differences(read, tree) == []
    assert hash_settings(read) == hash_settings(tree)


def test_all_settings_of_orienteer_survive(tmp_path: Path) -> None:
    tree = Settings().model_dump(mode="json")
    write_settings(tmp_path / "settings.toml", tree)
    assert Settings.model_validate(read_settings(tmp_path / "settings.toml")) == Settings()


def test_a_section_alone_gets_its_name() -> None:
    section = SimulateSettings(frames=7)
    assert settings_tree("simulate", section)["simulate"]["frames"] == 7


def test_differences_are_named_with_both_values() -> None:
    old = {"emc": {"a": 1, "b": [1.0, 2.0], "c": None, "d": math.nan, "e": True, "f": "x"}}
    new = {"emc": {"a": 2, "b": (1.0, 2.0), "d": math.nan, "e": 1, "f": "x", "g": {"h": 1.5}}}
    assert settings_differences(old, old) == []
    assert settings_differences(old, new) == [
        "emc.a (2 instead of 1)",
        "emc.e (1 instead of true)",
        "emc.g.h (1.5 instead of nothing)",
    ]
