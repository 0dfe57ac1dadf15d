"""HDF5 datasets that grow row by row while frames are written: frames, columns of numbers and text, metadata.

All are compressed and carry checksums.  Text is stored with a fixed length: rows of variable length lie
outside of HDF5's checksums, and damaged ones make the library crash or hang.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import get_dataset, read_array, read_numbers
from orienteer.errors import FileError, OrienteerError
from orienteer.source.hdf5_varying import read_texts

_CHUNK_BYTES = 2**18
_CHECKED = {"fletcher32": True}
PACKED = {"fletcher32": True, "shuffle": True, "compression": "gzip", "compression_opts": 1}
_LEAST_CHARACTERS = 16
_CHARACTERS = "characters"


def create_rows(
    group: h5py.Group, name: str, dtype: Any, shape: tuple[int, ...] = (), rows_per_chunk: int | None = None
) -> h5py.Dataset:
    """An empty table of rows of this shape that can grow; by default chunks hold about a quarter of a MiB."""
    row_bytes = max(1, np.dtype(dtype).itemsize * math.prod(shape))
    chunk = (rows_per_chunk or max(1, _CHUNK_BYTES // row_bytes), *(max(1, n) for n in shape))
    return group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunk, **PACKED)


def create_column(
    group: h5py.Group, name: str, like: NDArray[Any], rows_per_chunk: int | None = None
) -> h5py.Dataset:
    """An empty table for a column like the given one; text has room for 16 characters or more."""
    if not name or "/" in name or name.startswith("."):
        raise OrienteerError(f"'{name}' cannot be the name of a column.")
    if like.dtype.kind == "U":
        width = like.dtype.itemsize // 4
        # UTF-8 takes up to four bytes a character, and later texts may be longer than the first ones.
        room = h5py.string_dtype("utf-8", 4 * max(_LEAST_CHARACTERS, width))
        dataset = create_rows(group, name, room, like.shape[1:], rows_per_chunk)
        dataset.attrs[_CHARACTERS] = width
        return dataset
    if like.dtype.kind not in "biufcS":
        raise OrienteerError(f"column '{name}' of type {like.dtype} cannot be stored.")
    return create_rows(group, name, like.dtype, like.shape[1:], rows_per_chunk)


def as_stored(dataset: h5py.Dataset, rows: NDArray[Any]) -> NDArray[Any]:
    """The rows in the type of the dataset; an OrienteerError if shapes differ or values do not fit."""
    where = dataset.name.rpartition("/")[2]
    if rows.shape[1:] != dataset.shape[1:]:
        found, wanted = rows.shape[1:], dataset.shape[1:]
        raise OrienteerError(f"'{where}' holds rows of {wanted}; rows of {found} were added.")
    if rows.dtype.kind == "U" and _CHARACTERS in dataset.attrs:
        rows = np.char.encode(rows, "utf-8")
    if rows.dtype == dataset.dtype:
        return rows
    fits = rows.dtype.kind == dataset.dtype.kind or (rows.dtype.kind + dataset.dtype.kind).strip("biuf") == ""
    with np.errstate(invalid="ignore", over="ignore"):  # the comparison below finds what does not fit
        cast = rows.astype(dataset.dtype) if fits else rows
    if not fits or not np.array_equal(cast, rows, equal_nan=rows.dtype.kind in "fc"):
        values = f"{rows.dtype} values that do not fit"
        raise OrienteerError(f"'{where}' holds {dataset.dtype}; {values} were added.")
    return cast


def write_rows(dataset: h5py.Dataset, first: int, rows: NDArray[Any]) -> None:
    """Put rows, in the type of the dataset, from row ``first`` on; the table grows as needed."""
    last = first + len(rows)
    if len(dataset) < last:
        dataset.resize(last, axis=0)
    if len(rows):
        dataset[first:last] = rows


def append_rows(dataset: h5py.Dataset, rows: NDArray[Any]) -> None:
    """Add rows after those that are there; values that the dataset cannot hold are an error."""
    write_rows(dataset, len(dataset), as_stored(dataset, rows))


def columns_as_stored(group: h5py.Group, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns in the types of the group's tables; their names must be those of the tables."""
    if set(columns) != set(group):
        names = ", ".join(sorted(set(columns) ^ set(group)))
        raise OrienteerError(
            f"only some of the frames have the columns {names}.", "Give all frames the same columns."
        )
    return {name: as_stored(group[name], column) for name, column in columns.items()}


def append_columns(group: h5py.Group, columns: Mapping[str, NDArray[Any]]) -> None:
    """Add rows to all columns of the group."""
    for name, column in columns_as_stored(group, columns).items():
        write_rows(group[name], len(group[name]), column)


def read_column(dataset: h5py.Dataset, rows: slice, bytes_are_text: bool = True) -> NDArray[Any]:
    """Rows of a column of numbers or text, in the byte order of this machine."""
    if _CHARACTERS in dataset.attrs:
        width = max(1, int(read_numbers(dataset, _CHARACTERS, "iu")))
        text = np.char.decode(read_array(dataset, rows), "utf-8")
        return text.astype(np.promote_types(text.dtype, f"U{width}"))
    if bytes_are_text and h5py.check_string_dtype(dataset.dtype) is not None:
        return read_texts(dataset, rows)
    return read_array(dataset, rows)


def write_metadata(group: h5py.Group, name: str, metadata: Mapping[str, Any]) -> None:
    """Constant facts as one JSON text (1,) of fixed length."""
    try:
        text = json.dumps(dict(metadata)).encode()
    except TypeError as error:
        raise OrienteerError(f"metadata must be text and numbers ({error}).") from error
    values = np.array([text], dtype=h5py.string_dtype("utf-8", len(text)))
    group.create_dataset(name, data=values, chunks=(1,), **_CHECKED)


def read_metadata(group: h5py.Group, name: str) -> dict[str, Any]:
    """The facts that :func:`write_metadata` stored."""
    facts = json.loads(read_array(get_dataset(group, name, "S", (1,)))[0])
    if not isinstance(facts, dict):
        raise FileError(group.file.filename, f"has metadata in '{name}' that are no JSON object.")
    return facts
