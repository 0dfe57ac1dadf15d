"""No dataset is larger than what is stored, whatever the file declares."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.source.hdf5_reading import get_dataset, get_group, open_hdf5, read_array, read_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = np.arange(12).reshape(3, 4)
        file["big_endian"] = np.arange(3, dtype=">i4")
        file["text"] = np.array([b"a"])
        file["pair"] = np.zeros(3, [("a", "i4"), ("b", "i4")])
        file.create_dataset("never_written", (5, 6), "i4")
        file.create_dataset("zeros", data=np.zeros((50, 1000, 10)), chunks=(50, 1000, 10), compression="gzip")
        huge = file.create_dataset("huge", (2**40,), "i4", chunks=(4,))
        huge[:4] = 1
        file.create_dataset("huge_chunk", (2**28,), "i4", chunks=(2**28,))
        partly = file.create_dataset("partly", (100,), "i4", chunks=(10,))
        partly[:55] = 7
        file.create_dataset("elsewhere", (3,), "i4", external=[("/dev/zero", 0, 12)])
        file.create_dataset("empty", (0, 4), "i4", chunks=(1, 4), maxshape=(None, 4))
        file.create_group("group")
        file.attrs["fixed"], file.attrs["varying"], file.attrs["number"] = np.bytes_("é".encode()), "text", 3
    return path


@pytest.mark.parametrize("name", ["plain", "big_endian", "zeros", "empty"])
def test_what_is_stored_is_given(path: Path, name: str) -> None:
    with open_hdf5(path) as file:
        values = read_array(get_dataset(path, file, name))
        assert values.dtype.isnative
        np.testing.assert_array_equal(values, file[name][()])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "has no 'missing'"),
        ("group", "as a group"),
        ("text", "S1"),
        ("pair", "cannot be right"),
        ("never_written", "holds at most 0"),
        ("huge", "chunks, but at most"),
        ("huge_chunk", "one chunk of '/huge_chunk'"),
        ("partly", "10 chunks, but at most 6"),
        ("elsewhere", "other raw files"),
    ],
)
def test_what_is_not_there_is_refused(path: Path, name: str, words: str) -> None:
    with open_hdf5(path) as file, pytest.raises(FileError, match=words):
        get_dataset(path, file, name)


def test_shapes_and_rows_are_held_to_what_is_wanted(path: Path) -> None:
    with open_hdf5(path) as file:
        get_dataset(path, file, "plain", "i", (None, 4))
        get_dataset(path, file, "partly", "i", (None,), rows=60)
        with pytest.raises(FileError, match="7 chunks"):
            get_dataset(path, file, "partly", "i", (None,), rows=61)
        with pytest.raises(FileError, match="101 rows"):
            get_dataset(path, file, "partly", "i", (None,), rows=101)
        with pytest.raises(FileError, match=r"expected \(any, 5\)"):
            get_dataset(path, file, "plain", "i", (None, 5))
        with pytest.raises(FileError, match="no group 'plain'"):
            get_group(path, file, "plain")


def test_only_texts_of_fixed_length_are_followed(path: Path) -> None:
    with open_hdf5(path) as file:
        assert read_text(file, "fixed") == "é"
        assert [read_text(file, name) for name in ("varying", "number", "missing")] == [None, None, None]
