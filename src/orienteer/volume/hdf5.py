"""Orienteer's own volume file: HDF5 with one or several models on one grid, metadata and checksums.

The layout is described in ``docs/reference/volume-files.md``.
"""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import orienteer
from orienteer.compute.arrays import to_numpy
from orienteer.compute.reading import refuse_newer
from orienteer.errors import FileError, OrienteerError
from orienteer.volume.volume import Volume

FORMAT = "orienteer-volume"
VERSION = 1
_CHUNK_VOXELS = 1 << 18


def recognise_volume_hdf5(file: Any) -> bool:
    """Whether an open h5py file is one of Orienteer's volume files."""
    from orienteer.compute.hdf5_reading import read_text

    return read_text(file, "format") == FORMAT


def write_volume_hdf5(path: str | os.PathLike[str], volumes: Volume | Sequence[Volume]) -> None:
    """Put one volume, or several models on the same grid, into one file with checksums.

    Everything is kept exactly: values, voxel size, origin, space, names and metadata of each model.
    """
    from orienteer.compute.hdf5_writing import new_hdf5

    models = [volumes] if isinstance(volumes, Volume) else list(volumes)
    if not models:
        raise OrienteerError("there is no volume to write.", "Give at least one.")
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
                "Write models on different grids to separate files.",
            )
    with new_hdf5(path, libver="latest") as file:
        # Texts of fixed length, because HDF5's checksums do not cover those of variable length.
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
            # Planes of about a megabyte.  Not compressed: noise hardly shrinks, and trying takes ten times as
            # long as writing, which would be a tenth of the time of a run on a GPU.
            chunks=(1, _planes(first.shape), *first.shape[1:]),
            fletcher32=True,
        )
        for m, model in enumerate(models):
            values[m] = to_numpy(model.values)


def read_volumes_hdf5(path: str | os.PathLike[str]) -> tuple[Volume, ...]:
    """All models of one of Orienteer's volume files."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_numbers, read_text

    with open_hdf5(path, "volume file") as file:
        if not recognise_volume_hdf5(file):
            raise FileError(
                path,
                "is an HDF5 file, but not an Orienteer volume.",
                "Give a volume that Orienteer has written, or an .mrc file.",
            )
        refuse_newer(path, int(read_numbers(file, "version", "iu")), VERSION)
        values = get_dataset(file, "values", "f", (None, None, None, None))
        if values.dtype != np.dtype("<f4"):
            raise FileError(
                path,
                f"holds voxels of {values.dtype}, not float32.",
                "Write it again with Orienteer, or give an .mrc file.",
            )
        described = json.loads(get_dataset(file, "models", "S", (1,))[0])
        if not isinstance(described, list) or len(described) != len(values):
            raise FileError(path, f"describes {len(described)} models, but holds {len(values)}.")
        voxel_size, origin = (read_numbers(file, name, "f", (3,)) for name in ("voxel_size", "origin"))
        space: Any = read_text(file, "space")
        return tuple(
            Volume(values[m], voxel_size, space, origin, str(model["name"]), model["metadata"])
            for m, model in enumerate(described)
        )


def _planes(shape: tuple[int, ...]) -> int:
    """Planes of a volume that are stored together."""
    return max(1, min(shape[0], _CHUNK_VOXELS // (shape[1] * shape[2])))


def _plain(value: Any) -> Any:
    """A NumPy number of the metadata as a plain one."""
    if isinstance(value, np.generic):
        return value.item()
    raise OrienteerError(f"metadata {value!r} is not a text, number or flag, so the file cannot hold it.")
