"""Open a volume of any format, which is recognised by the content, never by the name."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.reading import is_hdf5, read_head, reading
from orienteer.compute.words import counted
from orienteer.errors import FileError
from orienteer.volume.dragonfly import (
    cube_edge,
    read_dragonfly_cube,
    read_dragonfly_output,
    recognise_dragonfly_output,
    write_dragonfly_cube,
)
from orienteer.volume.hdf5 import read_volumes_hdf5, recognise_volume_hdf5, write_volume_hdf5
from orienteer.volume.mrc import read_mrc, recognise_mrc, write_mrc
from orienteer.volume.volume import Space, Volume

MRC, OWN, DRAGONFLY_OUTPUT, DRAGONFLY_CUBE = "MRC", "Orienteer volume", "Dragonfly output", "Dragonfly cube"


def recognise_volume(path: str | os.PathLike[str]) -> str:
    """The format of a volume file: "MRC", "Orienteer volume", "Dragonfly output" or "Dragonfly cube"."""
    head = read_head(path, "volume file", unpack=True)
    with reading(path, "volume file") as file:
        if is_hdf5(head):
            return _recognise_hdf5(file)
        if recognise_mrc(head):
            return MRC
        if cube_edge(file.stat().st_size) is not None:
            return DRAGONFLY_CUBE
        raise FileError(
            file,
            "is not a volume that Orienteer knows.",
            "It reads MRC/CCP4, its own HDF5, and Dragonfly's .bin and output files.",
        )


def open_volumes(
    path: str | os.PathLike[str], voxel_size: Any = None, space: Space | None = None
) -> tuple[Volume, ...]:
    """All models of a volume file (most formats hold one).

    voxel_size : in A or 1/A; needed if the file does not state it, and overrides it if it does.
    space : "real" or "reciprocal"; likewise.
    """
    kind = recognise_volume(path)
    if kind == MRC:
        return (read_mrc(path, voxel_size, space),)
    if kind == OWN:
        return tuple(_otherwise(volume, voxel_size, space) for volume in read_volumes_hdf5(path))
    if kind == DRAGONFLY_OUTPUT:
        return read_dragonfly_output(path, voxel_size)
    return (read_dragonfly_cube(path, voxel_size, space or "reciprocal"),)


def open_volume(
    path: str | os.PathLike[str], model: int = 0, voxel_size: Any = None, space: Space | None = None
) -> Volume:
    """One volume from an MRC, HDF5 or Dragonfly file.

    model : which one, if the file holds several.  The other arguments are those of :func:`open_volumes`.

    >>> import numpy as np
    >>> write_volume("models.h5", [Volume(np.zeros((4, 4, 4)), 2.0), Volume(np.ones((4, 4, 4)), 2.0)])
    >>> float(open_volume("models.h5", model=1).values.mean())
    1.0
    """
    volumes = open_volumes(path, voxel_size, space)
    if not 0 <= model < len(volumes):
        raise FileError(
            path,
            f"holds {len(volumes)} model{'s' * (len(volumes) > 1)}; model {model} was asked for.",
            "They count from 0.",
        )
    return volumes[model]


def write_volume(path: str | os.PathLike[str], volumes: Volume | Sequence[Volume]) -> None:
    """Write a volume in the format of the name's ending: .mrc/.map/.ccp4 (also .gz), .h5/.hdf5, .bin.

    Several volumes (models of one run) go into one file, which only HDF5 can hold.

    >>> import numpy as np
    >>> write_volume("density.mrc", Volume(np.zeros((4, 4, 5)), voxel_size=2.0))
    >>> open_volume("density.mrc")
    <Volume 4 x 4 x 5, real space, voxel 2 A>
    """
    several = [volumes] if isinstance(volumes, Volume) else list(volumes)
    suffix = Path(path).suffix.lower()
    if suffix == ".gz":
        suffix = Path(Path(path).stem).suffix.lower()
    if suffix in (".h5", ".hdf5"):
        write_volume_hdf5(path, several)
        return
    writers = {".mrc": write_mrc, ".map": write_mrc, ".ccp4": write_mrc, ".bin": write_dragonfly_cube}
    if suffix not in writers:
        raise FileError(
            path,
            f"has the ending '{suffix}', which belongs to no volume format.",
            "Use .mrc, .map, .ccp4, .h5 or .bin.",
        )
    if len(several) != 1:
        raise FileError(
            path, f"cannot hold {counted(len(several), 'model')}.", "Write them as .h5, or one by one."
        )
    writers[suffix](path, several[0])


def _otherwise(volume: Volume, voxel_size: Any, space: Space | None) -> Volume:
    """The volume with another voxel size and space, its voxels in the same places of the grid."""
    if voxel_size is not None:
        other = replace(volume, voxel_size=voxel_size, origin=None)
        in_voxels = np.array(volume.origin) / np.array(volume.voxel_size)
        volume = replace(other, origin=in_voxels * np.array(other.voxel_size))
    return volume if space is None else replace(volume, space=space)


def _recognise_hdf5(file: Path) -> str:
    from orienteer.compute.hdf5_reading import open_hdf5

    with open_hdf5(file, "volume file") as opened:
        if recognise_volume_hdf5(opened):
            return OWN
        if recognise_dragonfly_output(opened):
            return DRAGONFLY_OUTPUT
        names = ", ".join(sorted(opened)[:6]) or "nothing"
    raise FileError(
        file,
        f"is an HDF5 file without a volume that Orienteer knows (it holds {names}).",
        "If it holds frames, reconstruct them first: orienteer reconstruct FILE.",
    )
