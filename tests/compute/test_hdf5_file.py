"""HDF5 files for reading: live ones too, and damage is an error at once."""

import struct
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.compute.hdf5_file import LiveFile, jenkins_lookup3, open_hdf5_for_reading, read_superblock


def write_file(path: Path, libver: object = ("v110", "v110")) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(100,), maxshape=(None,), fletcher32=True)


def mark_live(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[11] = 0x05
    content[44:48] = struct.pack("<I", jenkins_lookup3(bytes(content[:44])))
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("text", "checksum"),
    [(b"", 0xDEADBEEF), (b"Four score and seven years ago", 0x17770551)],
)
def test_the_checksum_gives_the_published_values(text: bytes, checksum: int) -> None:
    assert jenkins_lookup3(text) == checksum


def test_the_checksum_is_the_one_that_hdf5_writes(tmp_path: Path) -> None:
    write_file(tmp_path / "a.h5")
    head = (tmp_path / "a.h5").read_bytes()[:48]
    assert struct.unpack("<I", head[44:])[0] == jenkins_lookup3(head[:44])
    superblock = read_superblock(tmp_path / "a.h5")
    assert superblock is not None
    assert superblock.unmarked(superblock.end) == head


@pytest.mark.parametrize("libver", ["earliest", "v108", ("v110", "v110")])
def test_files_of_every_version_are_opened(tmp_path: Path, libver: object) -> None:
    write_file(tmp_path / "a.h5", libver)
    with open_hdf5_for_reading(tmp_path / "a.h5") as file:
        assert not isinstance(file, LiveFile)
        np.testing.assert_array_equal(file["x"], np.arange(1000))


def test_the_file_of_a_killed_writer_is_opened_and_keeps_its_name(tmp_path: Path) -> None:
    write_file(tmp_path / "a.h5")
    mark_live(tmp_path / "a.h5")
    with pytest.raises(OSError):
        h5py.File(tmp_path / "a.h5", "r")
    with open_hdf5_for_reading(tmp_path / "a.h5") as file:
        assert isinstance(file, LiveFile)
        assert file.filename == str(tmp_path / "a.h5")
        np.testing.assert_array_equal(file["x"], np.arange(1000))


def test_damage_to_a_live_file_is_found_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_file(path)
    mark_live(path)
    content = bytearray(path.read_bytes())
    root = struct.unpack("<Q", content[36:44])[0]
    for place in (root + 10, 20):
        damaged = content.copy()
        damaged[place] ^= 1
        path.write_bytes(damaged)
        start = time.monotonic()
        with pytest.raises((OSError, RuntimeError), match="checksum"), open_hdf5_for_reading(path) as file:
            list(file)
        assert time.monotonic() - start < 2


def test_other_files_are_errors_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"text")
    with pytest.raises(OSError):
        open_hdf5_for_reading(tmp_path / "a.h5")
    with pytest.raises(FileNotFoundError):
        open_hdf5_for_reading(tmp_path / "b.h5")
