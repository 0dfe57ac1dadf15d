"""No dataset is larger than what is stored, whatever the file declares."""

import os
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.compute.hdf5_reading import (
    check_stored,
    get_dataset,
    get_group,
    open_hdf5,
    read_array,
    read_numbers,
    read_text,
    read_whole,
)
from orienteer.errors import FileError


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
        values = read_array(get_dataset(file, name))
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
        ("huge", "chunks .* stores at most"),
        ("huge_chunk", "one chunk of '/huge_chunk'"),
        ("partly", "needs 10 chunks .* stores 6"),
        ("elsewhere", "other files"),
    ],
)
def test_what_is_not_there_is_refused(path: Path, name: str, words: str) -> None:
    with open_hdf5(path) as file, pytest.raises(FileError, match=words):
        get_dataset(file, name)


def test_shapes_and_rows_are_held_to_what_is_wanted(path: Path) -> None:
    with open_hdf5(path) as file:
        get_dataset(file, "plain", "i", (None, 4))
        get_dataset(file, "partly", "i", (None,), rows=60)
        with pytest.raises(FileError, match="7 chunks"):
            get_dataset(file, "partly", "i", (None,), rows=61)
        with pytest.raises(FileError, match="101 rows"):
            get_dataset(file, "partly", "i", (None,), rows=101)
        with pytest.raises(FileError, match=r"expected \(any, 5\)"):
            get_dataset(file, "plain", "i", (None, 5))
        with pytest.raises(FileError, match="no group 'plain'"):
            get_group(file, "plain")


def test_only_texts_of_fixed_length_are_followed(path: Path) -> None:
    with open_hdf5(path) as file:
        assert read_text(file, "fixed") == "é"
        assert [read_text(file, name) for name in ("varying", "number", "missing")] == [None, None, None]


def test_attributes_of_numbers_are_held_to_what_is_wanted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["one"], file.attrs["list_of_one"], file.attrs["three"] = 3, [4], [1.0, 2.0, 3.0]
        file.attrs["text"], file.attrs["nothing"] = "3", h5py.Empty("f8")
        assert int(read_numbers(file, "one", "iu")) == 3
        assert int(read_numbers(file, "list_of_one", "iu")) == 4
        assert read_numbers(file, "three", "f", (None,)).tolist() == [1, 2, 3]
        for name, kinds, shape in [
            ("one", "f", ()),
            ("three", "f", ()),
            ("three", "f", (2,)),
            ("text", "iuf", ()),
            ("nothing", "f", ()),
            ("missing", "iuf", ()),
        ]:
            with pytest.raises(FileError, match=f"attribute '{name}'"):
                read_numbers(file, name, kinds, shape)


LAYOUTS = [
    {},
    {"chunks": (100,)},
    {"chunks": (100,), "fletcher32": True},
    {"chunks": (100,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    {"chunks": (100,), "compression": "lzf"},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("noise", [False, True])
def test_sound_data_come_back_however_they_are_stored(
    layout: dict[str, object], noise: bool, tmp_path: Path
) -> None:
    # Compressors step aside for chunks of noise, which HDF5 then stores as they are.
    values = np.random.default_rng(0).integers(0, 256 if noise else 2, 1000).astype(np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, **layout)
        file.flush()
        assert np.array_equal(read_whole(file, "a", "iu", (1000,), 1000), values)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_data_beyond_the_end_of_the_file_are_refused_before_they_are_read(
    layout: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(0).integers(0, 2, 1000).astype(np.uint8)
        file.create_dataset("a", data=values, **layout)
    with h5py.File(path, "r") as file:
        dataset = file["a"].id
        start = dataset.get_chunk_info(9).byte_offset if layout else dataset.get_offset()
        list(file.attrs)
        os.truncate(path, start + 4)
        with pytest.raises(FileError, match=r"holds at most|impossible place"):
            read_whole(file, "a", "iu", (1000,), 1000)


def test_a_chunk_that_its_stored_bytes_cannot_fill_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["ballast"] = np.zeros(10_000)
        bomb = file.create_dataset("bomb", (2, 2**20), "u1", chunks=(1, 2**20), compression="gzip")
        for row, content in enumerate([bytes(2**20), bytes(2**19)]):
            bomb.id.write_direct_chunk((row, 0), zlib.compress(content, 9))
        file.flush()
        with pytest.raises(FileError, match="impossible place or size"):
            get_dataset(file, "bomb")


def test_whole_arrays_are_bounded_and_finite(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"], file["bad"] = np.zeros(5), [1.0, np.nan]
        with pytest.raises(FileError, match="declares 5 values in '/a'; at most 4"):
            read_whole(file, "a", "f", None, 4)
        with pytest.raises(FileError, match="not finite"):
            read_whole(file, "bad", "f", None, 4)


def test_data_in_other_files_are_read_only_where_that_is_asked_for(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((3,), "i4")
    with h5py.File(tmp_path / "part.h5", "w") as part:
        part["a"] = np.arange(3, dtype=np.int32)
        layout[:] = h5py.VirtualSource(part["a"])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink("part.h5", "/a")
    with open_hdf5(tmp_path / "a.h5") as file:
        assert read_array(get_dataset(file, "virtual", foreign=True)).tolist() == [0, 1, 2]
        assert read_array(get_dataset(file, "link")).tolist() == [0, 1, 2]
        with pytest.raises(FileError, match="other files"):
            get_dataset(file, "virtual")


def test_filters_that_may_crash_are_refused(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=np.zeros(40, np.uint8), chunks=(40,), **hdf5plugin.Bitshuffle())
        file.flush()
        with pytest.raises(FileError, match=r"compressed with bitshuffle .* not read here"):
            get_dataset(file, "a")
        get_dataset(file, "a", foreign=True)


def test_a_file_that_grows_while_it_is_looked_at_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "growing.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("energy", data=np.arange(64.0), chunks=(16,), maxshape=(None,))
    sizes = iter([2048])
    whole = os.path.getsize(path)
    assert whole > 2048
    with h5py.File(path, "r") as file:
        monkeypatch.setattr(os.path, "getsize", lambda _: next(sizes, whole))
        check_stored(file["energy"], rows=40)


def test_chunks_beyond_the_rows_that_are_there_are_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "growing.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("energy", data=np.arange(64.0), chunks=(16,), maxshape=(None,))
        last = dataset.id.get_chunk_info(3)
    with h5py.File(path, "r") as file:
        monkeypatch.setattr(os.path, "getsize", lambda _: last.byte_offset + 1)
        check_stored(file["energy"], rows=40)
        with pytest.raises(FileError, match="impossible place"):
            check_stored(file["energy"], rows=60)
