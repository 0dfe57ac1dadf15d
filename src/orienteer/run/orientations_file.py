"""``orientations.h5``: what a run has found about each frame, one row per frame, one column per quantity."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orienteer
from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.reading import refuse_newer
from orienteer.errors import FileError, OrienteerError

FORMAT, VERSION = "orienteer-orientations", 1
_ROWS_PER_CHUNK = 1 << 14


def write_orientations(
    path: str | os.PathLike[str], columns: Mapping[str, Array], iteration: int | None = None
) -> None:
    """Write columns (N, ...) of equal length to a new file with checksums.

    columns : by name; among them ``event_id`` (N,) uint64 and ``quaternion`` (N, 4), scalar first.
    iteration : after which the values were found.
    """
    from orienteer.compute.hdf5_writing import new_hdf5

    arrays = {name: to_numpy(column) for name, column in columns.items()}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1 or "event_id" not in arrays:
        raise OrienteerError(f"columns of {sorted(lengths)} rows are not a table of frames with event ids.")
    with new_hdf5(path, libver="latest") as file:
        file.attrs["format"] = np.bytes_(FORMAT)
        file.attrs["version"] = VERSION
        file.attrs["creator"] = np.bytes_(f"orienteer {orienteer.__version__}")
        if iteration is not None:
            file.attrs["iteration"] = int(iteration)
        for name, array in arrays.items():
            chunks = (max(1, min(len(array), _ROWS_PER_CHUNK)), *array.shape[1:])
            file.create_dataset(
                name,
                data=array,
                maxshape=(None, *array.shape[1:]),
                chunks=chunks,
                compression="gzip",
                compression_opts=1,
                shuffle=True,
                fletcher32=True,
            )


def read_orientations(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The columns (N, ...) of such a file, by name."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_array, read_numbers, read_text

    with open_hdf5(path, "table of orientations") as file:
        if read_text(file, "format") != FORMAT:
            raise FileError(
                path,
                "is an HDF5 file, but not a table of orientations.",
                "Give the orientations.h5 of a run, or a table of event_id and quaternion.",
            )
        refuse_newer(path, int(read_numbers(file, "version", "iu")), VERSION)
        n_rows = len(get_dataset(file, "event_id", "u", (None,)))
        columns = {name: read_array(get_dataset(file, name, "biuf")) for name in file}
    for name, column in columns.items():
        if column.shape[:1] != (n_rows,):
            raise FileError(Path(path), f"has '{name}' of shape {column.shape}, but {n_rows} frames.")
    return columns
