"""Files of JSON: whole, readable, without numbers that JSON does not know, and refused in words."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.compute.plain_json import read_described, write_json
from orienteer.errors import FileError


def test_what_is_written_is_read_again_and_numbers_that_are_none_are_null(tmp_path: Path) -> None:
    told = {"format": "made-up", "version": 1, "values": np.array([1.5, np.nan]), "word": "Å"}
    write_json(tmp_path / "a.json", told)
    assert read_described(tmp_path / "a.json", "thing", "made-up", 1) == {**told, "values": [1.5, None]}
    text = (tmp_path / "a.json").read_bytes()
    assert text.isascii()
    assert text.endswith(b"\n}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_value_that_json_does_not_know_leaves_the_file_that_is_there(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert (tmp_path / "a.json").read_text() == "1\n"


def test_a_description_of_something_else_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"format": "another", "version": 1})
    with pytest.raises(FileError, match="does not describe a thing of Orienteer") as caught:
        read_described(path, "thing", "made-up", 1, "Look elsewhere.")
    assert caught.value.hint == "Look elsewhere."
    write_json(path, {"format": "made-up", "version": 2})
    with pytest.raises(FileError, match="has version 2; this Orienteer reads up to 1"):
        read_described(path, "thing", "made-up", 1)
