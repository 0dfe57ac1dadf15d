"""The particle's symmetry put into merged sums: every slice stands for all its equivalents."""

import numpy as np

from orienteer.compare.symmetrising import mean_over_group
from orienteer.compare.turning import CUBIC
from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.point_group import PointGroup


def symmetric_start(cube: Array, group: PointGroup) -> Array:
    """A random relative intensity (n, n, n) with the symmetry of the group and the contrast it had before."""
    if group.order == 1:
        return cube
    xp = array_namespace(cube)
    deviation = cube - cube.mean()
    mean = mean_over_group(deviation, group)
    inside = mean != 0
    stretch = deviation[inside].std() / mean[inside].std()
    return xp.maximum(1 + stretch * mean, 0.1).astype(np.float32)


def symmetric_mean(cube: Array, group: PointGroup) -> Array:
    """A relative intensity (n, n, n) averaged over the group, by cubic splines; 1 where some lie outside."""
    return 1 + mean_over_group(cube - 1, group, CUBIC)


def symmetrise_sums(sums: Array, group: PointGroup) -> Array:
    """Sums (n, n, n, 2) averaged over the operations of the group, by trilinear interpolation."""
    if group.order == 1:
        return sums
    parts = [mean_over_group(sums[..., part], group) for part in range(2)]
    return array_namespace(sums).stack(parts, axis=-1).astype(sums.dtype)
