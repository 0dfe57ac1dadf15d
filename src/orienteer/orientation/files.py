"""Write a grid of orientations to a file, in one of the two layouts that Dragonfly reads."""

from pathlib import Path

import numpy as np

from orienteer.compute.atomic import atomic_path
from orienteer.orientation.pose_grid import PoseGrid


def write_grid(path: Path, grid: PoseGrid) -> None:
    """Write the quaternions with their weights.

    ``.h5`` holds one dataset ``quaternions`` (K, 5); any other ending gives text, with the number of
    rotations on the first line and then one rotation per line.  Both list w, x, y, z and the weight; the
    weights sum to 1.
    """
    table = np.column_stack([grid.quaternions, grid.weights])
    if path.suffix in (".h5", ".hdf5"):
        from orienteer.compute.hdf5_writing import new_hdf5

        with new_hdf5(path) as file:
            dataset = file.create_dataset("quaternions", data=table, fletcher32=True)
            dataset.attrs.update(kind=grid.kind, level=grid.level, point_group=str(grid.point_group))
    else:
        with atomic_path(path) as temporary:
            np.savetxt(temporary, table, fmt="%.17g", header=str(len(grid)), comments="")
