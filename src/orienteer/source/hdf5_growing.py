"""HDF5 datasets that grow row by row while frames are written, with columns of numbers and text.

Text is stored with a fixed length: rows of variable length lie outside of HDF5's checksums, and damaged ones
make the library crash or hang.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import read_array
from orienteer.errors import OrienteerError
from orienteer.source.hdf5_varying import read_texts

_CHUNK_ROWS, _CHUNK_BYTES = 1024, 2**18
_TEXT_BYTES = 64


def create_frames(group: Any, name: str, dtype: np.dtype[Any], frame_shape: tuple[int, ...]) -> Any:
    """A dataset (0, *frame_shape) of frames, one chunk each, compressed so that every HDF5 reads it."""
    return group.create_dataset(
        name,
        (0, *frame_shape),
        dtype,
        maxshape=(None, *frame_shape),
        chunks=(1, *frame_shape),
        shuffle=True,
        compression="gzip",
        compression_opts=1,
    )


def create_column(group: Any, name: str, like: NDArray[Any]) -> Any:
    """An empty dataset for a column like the given one; text gets room for 64 bytes or more."""
    if not name or "/" in name or name.startswith("."):
        raise OrienteerError(f"'{name}' cannot be the name of a column.")
    if like.dtype.kind in "biufc":
        dtype: Any = like.dtype
    elif like.dtype.kind in "US":
        dtype = h5py.string_dtype("utf-8", max(_TEXT_BYTES, 2 * like.dtype.itemsize))
    else:
        raise OrienteerError(f"column '{name}' of type {like.dtype} cannot be stored.")
    rest = like.shape[1:]
    row_bytes = max(1, math.prod(rest) * like.dtype.itemsize)
    chunks = (max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // row_bytes)), *(max(1, n) for n in rest))
    return group.create_dataset(
        name, (0, *rest), dtype, maxshape=(None, *rest), chunks=chunks, compression="gzip", compression_opts=1
    )


def append_rows(dataset: Any, rows: NDArray[Any]) -> None:
    """Add rows behind those that are there; numbers that the dataset's type cannot hold are an error."""
    first = len(dataset)
    if rows.dtype.kind in "US":
        rows = _encode(dataset, rows)
    elif rows.dtype != dataset.dtype:
        with np.errstate(invalid="ignore", over="ignore"):  # what does not fit is found by comparing
            cast = rows.astype(dataset.dtype)
        if not np.array_equal(cast, rows, equal_nan=rows.dtype.kind == "f"):
            where = dataset.name.rpartition("/")[2]
            raise OrienteerError(
                f"'{where}' holds {dataset.dtype}; {rows.dtype} values that do not fit were added."
            )
        rows = cast
    dataset.resize(first + len(rows), axis=0)
    dataset[first:] = rows


def append_columns(group: Any, columns: Mapping[str, NDArray[Any]]) -> None:
    """Add rows to all columns of the group; they must be the ones it was created with."""
    if set(columns) != set(group):
        names = ", ".join(sorted(set(columns) ^ set(group)))
        raise OrienteerError(
            f"only some of the frames have the columns {names}.", "Give all frames the same columns."
        )
    for name, column in columns.items():
        append_rows(group[name], column)


def _encode(dataset: Any, rows: NDArray[Any]) -> NDArray[Any]:
    encoded = np.char.encode(rows, "utf-8") if rows.dtype.kind == "U" else rows
    if encoded.dtype.itemsize > dataset.dtype.itemsize:
        where, room = dataset.name.rpartition("/")[2], dataset.dtype.itemsize
        raise OrienteerError(f"'{where}' has room for {room} bytes of text; longer ones do not fit.")
    return encoded.astype(dataset.dtype)


def read_column(dataset: Any, rows: slice) -> NDArray[Any]:
    """Rows of a column of numbers or text, in the byte order of this machine."""
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return read_texts(dataset, rows)
    return read_array(dataset, rows)
