"""A wrong name is answered with the one that was probably meant."""

from pathlib import Path

import pytest

from orienteer.compute.nearest import meant_instead, nearest
from orienteer.compute.reading import read_head
from orienteer.errors import FileError


def test_the_nearest_name_is_given_and_none_where_none_is_near() -> None:
    assert nearest("symetry", ["level", "symmetry"]) == "symmetry"
    assert nearest("symetry", ["level", "models"]) == ""
    assert nearest("symetry", []) == ""


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("framse.h5", "frames.h5"),
        ("frames.hdf5", "frames.h5"),
        ("Frames.h5", "frames.h5"),
        ("rnus", "runs"),
        ("rnus/virus", "runs/virus"),
        ("runs/virsu", "runs/virus"),
        ("rnus/other", ""),
        ("hits.cxi", ""),
        ("frames.h5/inside", ""),
        ("secret.h5", ""),
    ],
)
def test_files_and_folders_beside_a_wrong_path_are_proposed(tmp_path: Path, asked: str, meant: str) -> None:
    (tmp_path / "frames.h5").touch()
    (tmp_path / ".secret.h5").touch()
    (tmp_path / "runs" / "virus").mkdir(parents=True)
    expected = f"Did you mean {tmp_path / meant}?" if meant else "Check the path."
    assert meant_instead(tmp_path / asked, "Check the path.") == expected


def test_names_with_blanks_are_proposed_as_they_are_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my frames.h5").touch()
    with pytest.raises(FileError, match="does not exist") as raised:
        read_head("my framse.h5")
    assert raised.value.hint == "Did you mean 'my frames.h5'?"
