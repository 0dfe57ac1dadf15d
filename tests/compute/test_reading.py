"""Trouble with a file is said in one sentence that names it, and only regular files are opened."""

import gzip
import os
from pathlib import Path

import pytest

from orienteer.compute.reading import (
    HEAD_BYTES,
    OUT_OF_MEMORY,
    check_holds,
    is_hdf5,
    one_line,
    open_unpacked,
    read_head,
    reading,
    writing,
)
from orienteer.errors import FileError, GeometryMismatch, OrienteerError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file", "x.dat"), "does not exist"),
        (PermissionError(13, "Permission denied"), "permission"),
        (OSError("wrong checksum"), "wrong checksum"),
        (KeyError("data"), "data"),
        (ValueError("bad\n  header"), "bad header"),
        (MemoryError(), OUT_OF_MEMORY),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "invalid"),
        (OrienteerError("frames are odd."), "frames are odd"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_trouble_becomes_a_file_error_with_name_and_reason(error: Exception, words: str) -> None:
    with pytest.raises(FileError, match=words) as caught, reading("x.dat"):
        raise error
    assert "x.dat" in str(caught.value)
    assert caught.value.hint  # what to do next


def test_a_reason_without_advice_gets_some_and_advice_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.dat").touch()
    for hint, told in (("", "Is it a whole list of shots?"), ("Give another.", "Give another.")):
        with pytest.raises(FileError) as caught, reading("x.dat", "list of shots"):
            raise FileError("x.dat", "is odd.", hint)
        assert caught.value.hint.startswith(told)
    with pytest.raises(FileError, match="has 0 bytes") as caught:
        read_head(tmp_path / "x.dat")
    assert "copy" in caught.value.hint


def test_a_defect_of_the_program_is_not_disguised() -> None:
    with pytest.raises(NameError), reading("x.dat"):
        raise NameError("a defect")


def test_a_geometry_that_does_not_fit_stays_one_and_is_named_once() -> None:
    mismatch = pytest.raises(GeometryMismatch, match=r"^x\.dat: 3 pixels")
    with mismatch as caught, reading("x.dat"), reading("x.dat"):
        raise GeometryMismatch("3 pixels.", "Give another.")
    assert caught.value.hint == "Give another."


def test_a_full_disk_is_said_while_writing() -> None:
    with pytest.raises(FileError, match=r"x\.dat: could not be written: the disk is full"), writing("x.dat"):
        raise OSError(28, "No space left")


def test_only_regular_files_with_content_have_a_head(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for path, words in {
        tmp_path / "missing": "does not exist",
        tmp_path: "is a directory, not a map",
        tmp_path / "empty": "has 0 bytes",
        tmp_path / "empty" / "inside": "does not exist",
        tmp_path / "pipe": "not a regular file",
        Path("/dev/zero"): "not a regular file",
        tmp_path / "loop": "symbolic links",
        tmp_path / "nul\0": "null",
    }.items():
        with pytest.raises(FileError, match=words) as caught:
            read_head(path, "map")
        assert caught.value.path == str(path)


def test_a_head_is_the_first_bytes_or_what_they_unpack_to(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(gzip.compress(content))
    assert (
        read_head(tmp_path / "plain") == read_head(tmp_path / "packed", unpack=True) == content[:HEAD_BYTES]
    )
    assert read_head(tmp_path / "packed").startswith(b"\x1f\x8b")
    for name in ("plain", "packed"):
        with open_unpacked(tmp_path / name) as stream:
            assert stream.read() == content


def test_hdf5_is_seen_behind_a_user_block() -> None:
    signature = b"\x89HDF\r\n\x1a\n"
    assert is_hdf5(signature)
    assert is_hdf5(bytes(1024) + signature)
    assert not is_hdf5(bytes(1000) + signature)
    assert not is_hdf5(b"")


def test_more_than_a_file_holds_is_refused_and_errors_are_one_line() -> None:
    check_holds("x.dat", "frames", 5, 5)
    with pytest.raises(FileError, match="declares 6 bytes of frames, but holds at most 5"):
        check_holds("x.dat", "frames", 6, 5)
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(ValueError()) == "ValueError"
    assert len(one_line(ValueError("x" * 999))) == 200
