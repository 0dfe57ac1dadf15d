"""Orienteer's own volume file: HDF5 with one or several models on one grid, metadata and checksums.

The layout is described in ``docs/reference/volume-files.md``.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from orienteer.compute.arrays import to_numpy
from orienteer.compute.atomic import atomic_path
from orienteer.errors import FileError, OrienteerError
from orienteer.volume.reading import check_fits, reading_volume
from orienteer.volume.volume import Volume

FORMAT = "orienteer-volume"
VERSION = 1
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# gzip cannot shrink data more than this, so a file bounds what it may declare.
_DEFLATE_LIMIT = 1032


def recognise_volume_hdf5(file: Any) -> bool:
    """Whether an open h5py file is one of Orienteer's volume files."""
    return bool(_text(file.attrs.get("format")) == FORMAT)


def write_volume_hdf5(path: str | os.PathLike[str], volumes: Volume | Sequence[Volume]) -> None:
    """Put one volume, or several models on the same grid, into one file with checksums.

    Everything is kept exactly: values, voxel size, origin, space, names and metadata of each model.
    """
    import h5py

    models = [volumes] if isinstance(volumes, Volume) else list(volumes)
    if not models:
        raise OrienteerError("there is no volume to write.")
    first = models[0]
    for model in models:
        if (model.shape, model.voxel_size, model.origin, model.space) != (
            first.shape,
            first.voxel_size,
            first.origin,
            first.space,
        ):
            raise OrienteerError(
                f"{model!r} is not on the grid of {first!r}.",
                "Write models on different grids to files of their own.",
            )
    with atomic_path(path) as temporary, h5py.File(temporary, "w", libver="latest") as file:
        # Texts of fixed length: those of variable length lie outside of what HDF5's checksums cover.
        file.attrs["format"] = np.bytes_(FORMAT)
        file.attrs["version"] = VERSION
        file.attrs["creator"] = np.bytes_(f"orienteer {orienteer.__version__}")
        file.attrs["space"] = np.bytes_(first.space)
        file.attrs["unit"] = np.bytes_(first.unit)
        file.attrs["voxel_size"] = np.array(first.voxel_size)
        file.attrs["origin"] = np.array(first.origin)
        described = [{"name": model.name, "metadata": dict(model.metadata)} for model in models]
        text = np.array([json.dumps(described, default=_plain).encode("ascii")])
        file.create_dataset("models", data=text, chunks=(1,), fletcher32=True)
        values = file.create_dataset(
            "values",
            shape=(len(models), *first.shape),
            dtype="<f4",
            chunks=(1, *(min(n, 64) for n in first.shape)),
            compression="gzip",
            compression_opts=1,
            shuffle=True,
            fletcher32=True,
        )
        for m, model in enumerate(models):
            values[m] = to_numpy(model.values)


def read_volumes_hdf5(path: str | os.PathLike[str]) -> tuple[Volume, ...]:
    """All models of one of Orienteer's volume files."""
    import h5py

    with reading_volume(path) as file_path, h5py.File(file_path, "r") as file:
        if not recognise_volume_hdf5(file):
            raise FileError(file_path, "is an HDF5 file, but not an Orienteer volume.")
        version = int(file.attrs["version"])
        if version > VERSION:
            raise FileError(
                file_path,
                f"has layout version {version}; this Orienteer reads up to {VERSION}.",
                "Update Orienteer.",
            )
        values = checked_dataset(file, "values", file_path)
        if values.ndim != 4 or values.dtype != np.dtype("<f4"):
            raise FileError(
                file_path, f"'values' is {values.shape} {values.dtype}, not (models, x, y, z) float32."
            )
        described = json.loads(checked_dataset(file, "models", file_path, "S")[0])
        if not isinstance(described, list) or len(described) != len(values):
            raise FileError(file_path, f"describes {len(described)} models, but holds {len(values)}.")
        voxel_size, origin = file.attrs["voxel_size"], file.attrs["origin"]
        space: Any = _text(file.attrs["space"])
        return tuple(
            Volume(values[m], voxel_size, space, origin, str(model["name"]), model["metadata"])
            for m, model in enumerate(described)
        )


def checked_dataset(file: Any, name: str, path: Path, kinds: str = "biuf") -> Any:
    """A dataset of numbers (or ``kinds``) that its stored bytes can hold, with every chunk in place."""
    import h5py

    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None or dataset.dtype.kind not in kinds:
        raise FileError(path, f"has no usable dataset '{name}'.")
    stored = int(dataset.id.get_storage_size())
    declared = int(np.prod(dataset.shape, dtype=object)) * dataset.dtype.itemsize
    check_fits(path, stored, path.stat().st_size)
    check_fits(path, declared, stored * _DEFLATE_LIMIT if dataset.chunks else stored)
    if dataset.chunks:
        expected = int(
            np.prod([-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True)], dtype=object)
        )
        if dataset.id.get_num_chunks() != expected:
            raise FileError(
                path,
                f"'{name}' has {dataset.id.get_num_chunks()} of {expected} chunks.",
                "The file is incomplete.",
            )
    return dataset


def _plain(value: Any) -> Any:
    """A NumPy number of the metadata as a plain one."""
    if isinstance(value, np.generic):
        return value.item()
    raise OrienteerError(f"metadata {value!r} is no text, number or flag, so it cannot be kept.")


def _text(value: Any) -> str:
    """An HDF5 text attribute as str, whichever way it is stored; empty when it is no text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
