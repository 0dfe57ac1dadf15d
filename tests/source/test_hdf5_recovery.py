"""One writer at a time, and files that a dead one left behind."""

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.compute.hdf5_file import jenkins_lookup3
from orienteer.errors import FileError
from orienteer.source.hdf5_recovery import clear_marks_of_dead_writer, only_writer


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with only_writer(path), pytest.raises(FileError, match="being written"), only_writer(path):
        pass
    with only_writer(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_marks_are_cleared_and_new_data_go_behind_all_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file["x"] = np.arange(100)
    assert not clear_marks_of_dead_writer(path)
    content = bytearray(path.read_bytes())
    content[11] = 0x05
    content[44:48] = struct.pack("<I", jenkins_lookup3(bytes(content[:44])))
    path.write_bytes(bytes(content) + b"data behind the end that the superblock knows")
    assert clear_marks_of_dead_writer(path)
    with h5py.File(path, "r+") as file:
        file["y"] = np.ones(1000)
    assert path.read_bytes().count(b"data behind the end") == 1
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"], np.arange(100))


def test_a_damaged_superblock_is_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file["x"] = np.arange(100)
    content = bytearray(path.read_bytes())
    content[11] = 0x05
    path.write_bytes(content)
    with pytest.raises(OSError, match="checksum"):
        clear_marks_of_dead_writer(path)
    assert path.read_bytes() == content
