"""Atomic files: the old file or the new one, never half of either."""

from pathlib import Path

import pytest

from orienteer.compute.atomic import atomic_path, unwritable
from orienteer.errors import FileError


def test_the_new_file_replaces_the_old_one_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with atomic_path(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_who_reads_the_old_file_reads_it_to_its_end(tmp_path: Path) -> None:
    """The new file takes the name in one stroke; written over the old one, readers would see half of each."""
    target = tmp_path / "file"
    target.write_text("old")
    with target.open() as reader:
        with atomic_path(target) as temporary:
            temporary.write_text("new")
        assert reader.read() == "old"
    assert target.read_text() == "new"


def test_an_error_inside_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_path_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a directory"), atomic_path(tmp_path):
        pass
    with (
        pytest.raises(FileError, match="No such file or directory"),
        atomic_path(tmp_path / "absent" / "file"),
    ):
        pass


def test_a_file_where_a_folder_is_needed_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError) as caught:
        (tmp_path / "file").mkdir()
    told = unwritable(tmp_path / "file", caught.value)
    assert told.reason == "could not be written (File exists)."
    assert told.hint.startswith("A file is where a folder is needed")


def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="the disk is full") as caught, atomic_path(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    assert "disk" in caught.value.hint


def test_a_link_by_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    """Whoever may write in the folder could otherwise have a file elsewhere overwritten."""
    innocent = tmp_path / "innocent"
    innocent.write_text("mine")
    with atomic_path(tmp_path / "file") as temporary:
        name = temporary.name
    (tmp_path / name).symlink_to(innocent)
    with atomic_path(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert innocent.read_text() == "mine"
    assert (tmp_path / "file").read_text() == "new"
    assert not (tmp_path / "file").is_symlink()
