"""HDF5 files opened with care: no locks, live files readable, and no dataset larger than what is stored.

Text of variable length is never followed here: no checksum covers it, and the HDF5 library hangs on damaged
text.
"""

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
from orienteer.compute.hdf5_filters import (
    FLETCHER32,
    GZIP,
    LZF,
    SHUFFLE,
    check_chunks,
    check_filters,
    filter_pipeline,
)
from orienteer.compute.reading import COPY_AGAIN, check_holds, reading
from orienteer.errors import FileError

# The most that a filter can shrink data: deflate 1032 times; block filters such as Zstandard far more.
_GZIP_RATIO, _ANY_FILTER_RATIO = 1100, 40_000
_SHORTEST_PACKED = 5
# Every stored chunk has at least this many bytes in the index of chunks.
_INDEX_BYTES = 8
_LOOK_AT_CHUNKS_BELOW = 100_000
_LARGEST_ATTRIBUTE_BYTES = 1 << 20


@contextmanager
def open_hdf5(path: str | os.PathLike[str], what: str = "data file") -> Iterator[h5py.File]:
    """The file, open for reading inside the block; any problem is a FileError."""
    with reading(path, what), open_hdf5_for_reading(path) as file:
        yield file


def get_group(parent: h5py.Group, name: str) -> h5py.Group:
    """The group of this name; a FileError if there is none."""
    group = parent.get(name)
    if not isinstance(group, h5py.Group):
        raise FileError(parent.file.filename, f"has no group '{name}'.", COPY_AGAIN)
    return group


def get_dataset(
    group: h5py.Group,
    name: str,
    kinds: str = "iuf",
    shape: tuple[int | None, ...] | None = None,
    rows: int | None = None,
    foreign: bool = False,
) -> h5py.Dataset:
    """A dataset that is there, has the wanted kind and shape, and whose data are really in the file.

    kinds : NumPy kinds that are allowed, such as "iu" for whole numbers.
    shape : wanted shape, None for any length; by default any shape.
    rows, foreign : see :func:`check_stored`.
    """
    path = group.file.filename
    try:
        dataset = group[name]
    except KeyError as error:
        raise FileError(path, f"has no '{name}' in '{group.name}'.", COPY_AGAIN) from error
    where = dataset.name
    if not isinstance(dataset, h5py.Dataset):
        raise FileError(path, f"has '{where}' as a group, where data were expected.")
    if dataset.shape is None or dataset.dtype.kind not in kinds or dataset.dtype.fields is not None:
        found = f"{dataset.dtype} of shape {dataset.shape}"
        raise FileError(path, f"has '{where}' as {found}, which cannot be right.")
    if shape is not None and not _fits(dataset.shape, shape):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise FileError(path, f"has '{where}' of shape {dataset.shape}; expected ({wanted}).")
    if rows is not None and (dataset.ndim == 0 or len(dataset) < rows):
        raise FileError(path, f"has {dataset.shape} values in '{where}', but {rows} rows are needed.")
    check_stored(dataset, rows, foreign)
    return dataset


def check_stored(dataset: h5py.Dataset, rows: int | None = None, foreign: bool = False) -> None:
    """Refuse a dataset that declares more than the file holds, before anything is allocated for it.

    rows : look only at the first rows, the rest may be still to come; by default all must be stored.
    foreign : accept what facilities write, too: virtual datasets, and the compressions of hdf5plugin.
    """
    path = Path(dataset.file.filename)
    shape = dataset.shape if rows is None else (rows, *dataset.shape[1:])
    declared = math.prod(shape) * dataset.id.get_type().get_size()
    if declared == 0 or (foreign and dataset.is_virtual):
        return
    if dataset.external or dataset.is_virtual:
        raise FileError(
            path,
            f"keeps '{dataset.name}' in other files, which are not read.",
            "Copy the data into one file first.",
        )
    file_bytes = os.path.getsize(path)
    layout = dataset.id.get_create_plist().get_layout()
    if layout == h5py.h5d.CHUNKED:
        check_filters(dataset, foreign)
        _check_chunks(path, dataset, shape, rows is None, file_bytes)
        return
    offset = 0 if layout == h5py.h5d.COMPACT else dataset.id.get_offset()
    check_holds(path, f"'{dataset.name}'", declared, 0 if offset is None else file_bytes - offset)


def _check_chunks(
    path: Path, dataset: h5py.Dataset, shape: tuple[int, ...], is_whole: bool, file_bytes: int
) -> None:
    codes = [code for code, _, _ in filter_pipeline(dataset)]
    packers = {code for code in codes if code not in (SHUFFLE, FLETCHER32)}
    is_own = packers <= {GZIP, LZF}
    ratio = (_GZIP_RATIO if is_own else _ANY_FILTER_RATIO) ** len(packers)
    chunk_bytes = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
    check_holds(path, f"one chunk of '{dataset.name}'", chunk_bytes, file_bytes * ratio)
    needed = math.prod(-(-n // chunk) for n, chunk in zip(shape, dataset.chunks, strict=True))
    stored = file_bytes // _INDEX_BYTES
    is_counted = needed <= min(stored, _LOOK_AT_CHUNKS_BELOW)
    if is_counted:
        stored = 0

        def look(chunk: h5py.h5d.StoreInfo) -> None:
            nonlocal stored
            if not is_whole and chunk.chunk_offset[0] >= shape[0]:
                return  # still being written
            stored += 1
            # A compressor is skipped for a chunk that does not shrink, which the mask shows.  The library
            # crashes on chunks that are shorter than the least that their filters produce.
            active = {code for k, code in enumerate(codes) if not chunk.filter_mask >> k & 1}
            least = most = chunk_bytes + (4 if FLETCHER32 in active else 0)
            if active & packers:
                least = max(_SHORTEST_PACKED, chunk_bytes // ratio if is_own else 0)
                most = most + chunk_bytes // 100 + 1024 if is_own else file_bytes
            end = math.inf if chunk.byte_offset is None else chunk.byte_offset + chunk.size
            # The file may grow while it is checked.
            is_inside = end <= file_bytes or end <= os.path.getsize(path)
            if not is_inside or not least <= chunk.size <= most:
                where = f"a chunk of '{dataset.name}' at {chunk.chunk_offset}"
                raise FileError(path, f"has {where} of impossible place or size.", COPY_AGAIN)

        dataset.id.chunk_iter(look)
    if needed > stored or (is_whole and is_counted and needed < stored):
        found = stored if is_counted else f"at most {stored}"
        raise FileError(
            path,
            f"needs {needed} chunks for the {shape} values of '{dataset.name}', but stores {found}.",
            COPY_AGAIN,
        )


def read_array(dataset: h5py.Dataset, rows: slice | tuple[()] = ()) -> NDArray[Any]:
    """All of a dataset, or rows of it, in the byte order of this machine."""
    check_chunks(dataset, rows)
    values = np.asarray(dataset[rows])
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def read_whole(
    group: h5py.Group, name: str, kinds: str, shape: tuple[int | None, ...] | None, largest: int
) -> NDArray[Any]:
    """A dataset of at most ``largest`` finite values, read at once; kinds and shape as in get_dataset."""
    dataset = get_dataset(group, name, kinds, shape)
    path = dataset.file.filename
    # A chunk is decompressed whole, so its declared size matters as much as the dataset's.
    entries = max(dataset.size, math.prod(dataset.chunks or (0,)))
    if entries > largest or entries * dataset.dtype.itemsize > 16 * largest + (1 << 20):
        what = f"declares {entries} values in '{dataset.name}'; at most {largest} are expected."
        raise FileError(path, what, COPY_AGAIN)
    values = read_array(dataset)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise FileError(path, f"has values in '{dataset.name}' that are not finite.", COPY_AGAIN)
    return values


def read_text(holder: h5py.Group | h5py.Dataset, name: str) -> str | None:
    """An attribute that is one text of fixed length; None when it is missing or something else."""
    if name not in holder.attrs or not _is_small(holder, name, "S", ()):
        return None
    try:
        return bytes(holder.attrs[name]).decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_numbers(
    holder: h5py.Group | h5py.Dataset, name: str, kinds: str = "iuf", shape: tuple[int | None, ...] = ()
) -> NDArray[Any]:
    """An attribute of numbers, by default one (or a list of one); kinds and shape as in get_dataset."""
    for wanted in ((), (1,)) if shape == () else (shape,):
        if name in holder.attrs and _is_small(holder, name, kinds, wanted):
            values = np.asarray(holder.attrs[name])
            return values.reshape(()) if shape == () else values
    what = "number" if shape == () else "list of numbers"
    where = f"attribute '{name}' of '{holder.name}'"
    raise FileError(holder.file.filename, f"has no {what} as {where}.", COPY_AGAIN)


def _is_small(
    holder: h5py.Group | h5py.Dataset, name: str, kinds: str, shape: tuple[int | None, ...]
) -> bool:
    attribute = holder.attrs.get_id(name)
    if attribute.dtype.kind not in kinds or attribute.dtype.fields is not None:
        return False
    found = attribute.shape
    n_bytes = math.prod(found or ()) * attribute.dtype.itemsize
    return found is not None and _fits(found, shape) and n_bytes <= _LARGEST_ATTRIBUTE_BYTES


def _fits(found: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(found) == len(wanted) and all(n is None or n == m for n, m in zip(wanted, found, strict=True))
