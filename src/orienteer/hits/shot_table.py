"""Write the table of shots, one row each, to a file that other programs can read."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.atomic import atomic_path
from orienteer.errors import FileError

ENDINGS = (".csv", ".h5", ".npz")


def check_table_path(out: Path) -> None:
    """Raise an error if the ending of the file name is not a known table format."""
    if out.suffix not in ENDINGS:
        raise FileError(
            out,
            f"'{out.suffix}' is not a known table format.",
            f"Give a name that ends in {', '.join(ENDINGS)}.",
        )


def write_shot_table(out: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns (N, ...) to a .csv, .h5 or .npz file, the last two with a data set per column.

    In .csv, a column with several values per shot becomes several columns, ``name_0`` and so on; true and
    false become 1 and 0, and NaN an empty field.
    """
    check_table_path(out)
    with atomic_path(out) as temporary:
        if out.suffix == ".csv":
            _write_csv(temporary, columns)
        elif out.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(file, **columns)  # type: ignore[arg-type]
        else:
            import h5py

            with h5py.File(temporary, "w") as file:
                for name, column in columns.items():
                    file.create_dataset(name.replace("/", "_"), data=_for_hdf5(column))


def _write_csv(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    flat = {name: column for given, whole in columns.items() for name, column in _split(given, whole)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(flat)
        writer.writerows(zip(*(_for_text(column) for column in flat.values()), strict=True))


def _split(name: str, column: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    if column.ndim == 1:
        return [(name, column)]
    values = column.reshape(len(column), int(np.prod(column.shape[1:])))
    return [(f"{name}_{i}", values[:, i]) for i in range(values.shape[1])]


def _for_text(column: NDArray[Any]) -> list[Any]:
    if column.dtype == bool:
        return list(column.astype(np.uint8).tolist())
    if column.dtype.kind == "f":
        # As short as the precision allows: 0.1 and not 0.10000000149.
        return ["" if np.isnan(value) else str(value) for value in column]
    if column.dtype.kind == "S":
        return [value.decode("utf-8", "replace") for value in column.tolist()]
    return list(column.tolist())


def _for_hdf5(column: NDArray[Any]) -> NDArray[Any]:
    return np.char.encode(column, "utf-8") if column.dtype.kind == "U" else column
