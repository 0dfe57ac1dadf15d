"""HDF5 files opened with care: no locks, live files readable, and no dataset larger than what is stored."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_file import open_hdf5_for_reading
from orienteer.errors import FileError
from orienteer.source.reading import check_holds, reading

# The most that a filter can shrink data: deflate 1032 times; block filters such as Zstandard far more.
_GZIP_RATIO, _ANY_FILTER_RATIO = 1100, 40_000
# Every stored chunk has at least this many bytes in the index of chunks.
_INDEX_BYTES = 8
_LOOK_AT_CHUNKS_BELOW = 100_000
_GZIP, _SHUFFLE, _FLETCHER32 = h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32
_SHORTEST_PACKED = 5


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """The file, open for reading inside the block; trouble is a FileError."""
    with reading(path):
        file = open_hdf5_file(path)
        try:
            yield file
        finally:
            file.close()


def open_hdf5_file(path: Path) -> h5py.File:
    """The file, open for reading until it is closed; call it inside ``reading(path)``.

    No lock is taken: a file on a read-only or lockless disk opens, and no writer is kept waiting.
    """
    return open_hdf5_for_reading(path)


def get_group(path: Path, parent: h5py.Group, name: str) -> h5py.Group:
    """A group that is there and is one."""
    group = parent.get(name)
    if not isinstance(group, h5py.Group):
        raise FileError(path, f"has no group '{name}'.", "The file is damaged or incomplete.")
    return group


def get_dataset(
    path: Path,
    group: h5py.Group,
    name: str,
    kinds: str = "iuf",
    shape: tuple[int | None, ...] | None = None,
    rows: int | None = None,
) -> h5py.Dataset:
    """A dataset that is there, has the wanted kind and shape, and whose data are really in the file.

    kinds : NumPy kinds that are allowed, such as "iu" for whole numbers.
    shape : wanted shape, None for any length; by default any shape.
    rows : how many rows must be there and stored; by default all that are declared.
    """
    try:
        dataset = group[name]
    except KeyError as error:
        hint = "The file is damaged or incomplete."
        raise FileError(path, f"has no '{name}' in '{group.name}'.", hint) from error
    where = dataset.name
    if not isinstance(dataset, h5py.Dataset):
        raise FileError(path, f"has '{where}' as a group, where data were expected.")
    if dataset.shape is None or dataset.dtype.kind not in kinds or dataset.dtype.fields is not None:
        found = f"{dataset.dtype} of shape {dataset.shape}"
        raise FileError(path, f"has '{where}' as {found}, which cannot be right.")
    if shape is not None and (
        dataset.ndim != len(shape)
        or any(n is not None and n != m for n, m in zip(shape, dataset.shape, strict=True))
    ):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise FileError(path, f"has '{where}' of shape {dataset.shape}; expected ({wanted}).")
    if rows is not None and (dataset.ndim == 0 or len(dataset) < rows):
        raise FileError(path, f"has {dataset.shape} values in '{where}', but {rows} rows are needed.")
    check_stored(path, dataset, rows)
    return dataset


def check_stored(path: Path, dataset: h5py.Dataset, rows: int | None = None) -> None:
    """Refuse a dataset that declares more than the file holds, before anything is allocated for it.

    rows : look only at the first rows; the rest may be still to come.
    """
    shape = dataset.shape if rows is None else (rows, *dataset.shape[1:])
    declared = math.prod(shape) * dataset.id.get_type().get_size()
    if declared == 0 or dataset.is_virtual:
        return
    if dataset.external:
        raise FileError(path, f"keeps '{dataset.name}' in other raw files, which are not read.")
    file_bytes = os.path.getsize(path)
    layout = dataset.id.get_create_plist().get_layout()
    if layout == h5py.h5d.COMPACT:
        check_holds(path, f"'{dataset.name}'", declared, file_bytes)
    elif layout == h5py.h5d.CONTIGUOUS:
        offset = dataset.id.get_offset()
        check_holds(path, f"'{dataset.name}'", declared, file_bytes - offset if offset is not None else 0)
    else:
        _check_chunks(path, dataset, shape, file_bytes)


def _check_chunks(path: Path, dataset: h5py.Dataset, shape: tuple[int, ...], file_bytes: int) -> None:
    filters = dataset.id.get_create_plist()
    codes = [filters.get_filter(number)[0] for number in range(filters.get_nfilters())]
    packers = [code for code in codes if code not in (_SHUFFLE, _FLETCHER32)]
    ratio = math.prod(_GZIP_RATIO if code == _GZIP else _ANY_FILTER_RATIO for code in packers)
    chunk_bytes = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
    check_holds(path, f"one chunk of '{dataset.name}'", chunk_bytes, file_bytes * ratio)
    needed = math.prod(-(-n // chunk) for n, chunk in zip(shape, dataset.chunks, strict=True))
    stored = file_bytes // _INDEX_BYTES
    if needed <= min(stored, _LOOK_AT_CHUNKS_BELOW):
        stored = 0

        def look(chunk: h5py.h5d.StoreInfo) -> None:
            nonlocal stored
            stored += 1
            # The library crashes on chunks that are shorter than what their filters leave at least.
            active = [code for k, code in enumerate(codes) if not chunk.filter_mask >> k & 1]
            whole = chunk_bytes + (4 if _FLETCHER32 in active else 0)
            is_packed = any(code in packers for code in active)
            is_right = chunk.size >= _SHORTEST_PACKED if is_packed else chunk.size == whole
            if chunk.byte_offset is None or chunk.byte_offset + chunk.size > file_bytes or not is_right:
                where = f"a chunk of '{dataset.name}' at {chunk.chunk_offset}"
                raise FileError(path, f"has {where} of impossible place or size.", "The file is damaged.")

        dataset.id.chunk_iter(look)
    if needed > stored:
        raise FileError(
            path,
            f"declares {shape} values in '{dataset.name}', {needed} chunks, but at most {stored} are stored.",
            "The file is damaged or was not written to its end.",
        )


def read_array(dataset: h5py.Dataset, rows: slice = slice(None)) -> NDArray[Any]:
    """Rows of a dataset in the byte order of this machine."""
    values = np.asarray(dataset[rows])
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def read_text(holder: h5py.Group | h5py.Dataset, attribute: str) -> str | None:
    """An attribute that is one text of fixed length; None when it is missing or something else.

    Texts of variable length are not followed: no checksum covers them, and the HDF5 library hangs on damaged
    ones.
    """
    if attribute not in holder.attrs:
        return None
    if holder.attrs.get_id(attribute).dtype.kind != "S":
        return None
    value = holder.attrs[attribute]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else None
