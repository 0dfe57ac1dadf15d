"""Rows of variable length: those that were written, and no trust in what a damaged file says."""

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.source.hdf5_varying import read_texts, read_varying

ROWS = [np.arange(n, dtype=np.int32) - 5 for n in (0, 1, 7, 300, 0, 2, 40_000, 3)]
TEXTS = ["", "a", "µm", "x" * 500, "end", "", "7", "last"]


def write(path, **storage) -> None:
    with h5py.File(path, "w", userblock_size=storage.pop("userblock_size", 0)) as file:
        lists = file.create_dataset(
            "lists", (8,), h5py.vlen_dtype(np.dtype(storage.pop("dtype", "<i4"))), **storage
        )
        for d, row in enumerate(ROWS):
            lists[d] = row
        file.create_dataset("texts", data=TEXTS, dtype=h5py.string_dtype(), **storage)
        file.create_dataset("fixed", data=np.char.encode(TEXTS, "utf-8"))


@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"chunks": (1,)},
        {"chunks": (3,)},
        {"chunks": (3,), "compression": "gzip", "shuffle": True},
        {"dtype": ">i8"},
        {"dtype": "<u2", "chunks": (2,)},
        {"userblock_size": 512},
    ],
)
def test_rows_are_those_that_were_written(tmp_path, storage) -> None:
    path = tmp_path / "a.h5"
    write(path, **storage)
    with h5py.File(path) as file:
        for first, last in [(0, 8), (2, 5), (7, 8), (3, 3)]:
            lengths, values = read_varying(file["lists"], slice(first, last))
            expected = [row.astype(values.dtype) for row in ROWS[first:last]]
            assert lengths.tolist() == [len(row) for row in expected]
            assert np.array_equal(values, np.concatenate([*expected, np.zeros(0, np.int32)]))
            assert read_texts(file["texts"], slice(first, last)).tolist() == TEXTS[first:last]
            assert read_texts(file["fixed"], slice(first, last)).tolist() == TEXTS[first:last]


def heap_of(content: bytes) -> int:
    return content.index(b"GCOL")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda c, at: c[: at + 16] + bytes(4000) + c[at + 4016 :], "but only 0 are stored"),
        (lambda c, at: c.replace(b"GCOL", b"XXXX"), "where none is stored"),
        (lambda c, at: c[: at + 8] + b"\xff" * 8 + c[at + 16 :], "beyond the end"),
        (lambda c, at: c[: at + 24] + b"\xff" * 8 + c[at + 32 :], "refers to"),
    ],
)
def test_damaged_heaps_are_refused_where_the_library_would_hang(tmp_path, damage, reason) -> None:
    path = tmp_path / "a.h5"
    write(path)
    content = path.read_bytes()
    path.write_bytes(damage(content, heap_of(content)))
    with h5py.File(path) as file, pytest.raises(FileError, match=reason):
        read_varying(file["lists"], slice(0, 8))


def test_a_length_beyond_what_is_stored_is_refused(tmp_path) -> None:
    path = tmp_path / "a.h5"
    write(path)
    with h5py.File(path) as file:
        offset = file["lists"].id.get_offset()
    content = bytearray(path.read_bytes())
    content[offset + 32 : offset + 36] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    with h5py.File(path) as file, pytest.raises(FileError, match="a row of 8589934588 bytes"):
        read_varying(file["lists"], slice(0, 8))
