"""The symmetry of the particle in the merged sums: every slice also counts at its equivalent poses."""

from functools import lru_cache

import numpy as np

from orienteer.compare.symmetrising import mean_over_group
from orienteer.compare.turning import CUBIC
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import to_matrix


def symmetric_start(cube: Array, group: PointGroup) -> Array:
    """A random relative intensity (n, n, n), averaged over the group and stretched to its former contrast."""
    if group.order == 1:
        return cube
    xp = array_namespace(cube)
    deviation = cube - cube.mean()
    mean = mean_over_group(deviation, group)
    inside = mean != 0
    stretch = deviation[inside].std() / mean[inside].std()
    return xp.maximum(1 + stretch * mean, 0.1).astype(np.float32)


def symmetric_mean(cube: Array, group: PointGroup) -> Array:
    """A relative intensity (n, n, n) averaged over the group, by cubic splines.

    It is 1 at voxels that some rotation moves out of the cube.
    """
    return 1 + mean_over_group(cube - 1, group, CUBIC)


def symmetrise_sums(sums: Array, group: PointGroup) -> Array:
    """Sums (n, n, n, 2) over each voxel and its equivalents, divided by the order of the group.

    Equivalent points are interpolated trilinearly.  A voxel on an axis, which is its own equivalent more than
    once, counts once.
    """
    if group.order == 1:
        return sums
    own = copies(len(sums), group, is_on_gpu(sums))
    parts = [mean_over_group(sums[..., part], group) / own for part in range(2)]
    return array_namespace(sums).stack(parts, axis=-1).astype(sums.dtype)


@lru_cache(maxsize=2)
def copies(n: int, group: PointGroup, on_gpu: bool = False) -> Array:
    """How many rotations of a group leave each voxel of a cube (n, n, n) in its place, float32, at least 1.

    A rotation that moves it by less than a voxel counts in part.
    """
    axis = np.arange(n, dtype=np.float32) - np.float32(n // 2)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)
    found = np.zeros((n, n, n), np.float32)
    for moves in (to_matrix(group.quaternions) - np.eye(3)).astype(np.float32):
        moved = sum(np.square(row[0] * x + row[1] * y + row[2] * z) for row in moves)
        found += np.maximum(1 - np.sqrt(moved), 0)
    return to_device(found, "cuda" if on_gpu else "cpu")
