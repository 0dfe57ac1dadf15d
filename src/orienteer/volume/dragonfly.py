"""Volumes as Dragonfly stores them: raw float64 cubes, and the models of its output files.

Dragonfly counts in voxels: neither file says how large one is.  With the detector's ``ewald_rad`` (voxels) it
is 1 / (wavelength_A * ewald_rad) in 1/A.
"""

import os
from typing import Any

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import reading
from orienteer.errors import FileError, OrienteerError
from orienteer.volume.volume import Space, Volume

_VOXEL_HINT = (
    "Write a copy that states it: orienteer convert IN OUT.mrc --voxel-inv-A SIZE (voxel_size= in Python); "
    "for Dragonfly it is 1 / (wavelength_A * ewald_rad) in 1/A."
)


def cube_edge(n_bytes: int) -> int | None:
    """Voxels along the edge of a raw float64 cube of odd size with so many bytes; None if it is not one.

    A single voxel does not count, because any file of eight bytes would be one.

    >>> cube_edge(8 * 5**3), cube_edge(8 * 4**3), cube_edge(1001), cube_edge(8)
    (5, None, None, None)
    """
    n = round((n_bytes / 8) ** (1 / 3))
    return n if n > 1 and n % 2 == 1 and 8 * n**3 == n_bytes else None


def read_dragonfly_cube(
    path: str | os.PathLike[str], voxel_size: Any = None, space: Space = "reciprocal"
) -> Volume:
    """A Dragonfly density or intensity ``.bin``: float64, C order [x, y, z], centre at n // 2, n odd.

    voxel_size : in A or 1/A; the file does not say.
    space : "reciprocal" for intensities, "real" for densities; the file does not say.
    """
    with reading(path, "volume file") as file:
        n_bytes = file.stat().st_size
        n = cube_edge(n_bytes)
        if n is None:
            raise FileError(
                file,
                f"has {n_bytes} bytes, which is not the size of a float64 cube with an odd edge.",
                "Give a volume of Dragonfly, or one as .mrc or .h5.",
            )
        if voxel_size is None:
            raise FileError(file, "is a raw cube, which does not say how large a voxel is.", _VOXEL_HINT)
        return Volume(np.fromfile(file, "<f8").reshape(n, n, n), voxel_size, space)


def write_dragonfly_cube(path: str | os.PathLike[str], volume: Volume) -> None:
    """Write a volume as a Dragonfly ``.bin``.  Voxel size, origin, space, name and metadata are lost."""
    if len(set(volume.shape)) != 1 or volume.shape[0] % 2 == 0:
        raise OrienteerError(
            f"Dragonfly's raw volumes are cubes with an odd edge; this one is {volume.shape}.",
            "Write MRC instead.",
        )
    with atomic_path(path) as temporary:
        to_numpy(volume.values).astype("<f8").tofile(temporary)


def recognise_dragonfly_output(file: Any) -> bool:
    """Whether an open h5py file is an ``output_NNN.h5`` of Dragonfly."""
    return "intens" in file and "place_ones" not in file


def read_dragonfly_output(path: str | os.PathLike[str], voxel_size: Any = None) -> tuple[Volume, ...]:
    """The intensity models of a Dragonfly ``output_NNN.h5``, one per mode, in reciprocal space.

    voxel_size : in 1/A; the file does not say.
    """
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5

    with open_hdf5(path, "volume file") as file:
        if not recognise_dragonfly_output(file):
            raise FileError(
                path,
                "is an HDF5 file, but not an output of Dragonfly (no 'intens').",
                "Give an output_NNN.h5 of Dragonfly, or a volume as .mrc or .h5.",
            )
        intens = get_dataset(file, "intens", "biuf")
        if intens.ndim != 4:
            raise FileError(
                path,
                f"holds 2D models ('intens' is {intens.shape}).",
                "Only 3D models (modes, n, n, n) are volumes.",
            )
        if voxel_size is None:
            raise FileError(
                path, "is an output of Dragonfly, which does not say how large a voxel is.", _VOXEL_HINT
            )
        return tuple(
            Volume(intens[m], voxel_size, "reciprocal", name=f"mode {m}") for m in range(len(intens))
        )
