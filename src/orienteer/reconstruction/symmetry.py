"""The particle's symmetry put into merged sums: every slice stands for all its equivalents."""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import to_matrix
from orienteer.slicing.trilinear import slice_volume

_POINTS_AT_ONCE = 1 << 20


def symmetric_start(cube: Array, group: PointGroup) -> Array:
    """A random relative intensity (n, n, n) with the symmetry of the group and the contrast it had before."""
    if group.order == 1:
        return cube
    xp = array_namespace(cube)
    deviation = cube - cube.mean()
    mean = symmetrise_sums(xp.stack([deviation] * 2, axis=-1), group)[..., 0]
    inside = mean != 0
    stretch = deviation[inside].std() / mean[inside].std()
    return xp.maximum(1 + stretch * mean, 0.1).astype(np.float32)


def symmetrise_sums(sums: Array, group: PointGroup) -> Array:
    """Sums (n, n, n, 2) averaged over the operations of the group, by trilinear interpolation."""
    if group.order == 1:
        return sums
    xp = array_namespace(sums)
    n = len(sums)
    axis = np.arange(n, dtype=np.float32) - n // 2
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    # Beyond the inscribed ball some equivalents lie outside the cube; there nothing is merged.
    inside = np.flatnonzero((points**2).sum(axis=1) <= (n // 2 - 1) ** 2)
    matrices = xp.asarray(to_matrix(group.quaternions).astype(np.float32))
    out = xp.zeros_like(sums)
    flat = out.reshape(-1, 2)
    for part in range(2):
        volume = xp.ascontiguousarray(sums[..., part].astype(xp.float32))
        for first in range(0, len(inside), _POINTS_AT_ONCE):
            places = inside[first : first + _POINTS_AT_ONCE]
            samples = slice_volume(volume, xp.asarray(points[places]), matrices)
            flat[xp.asarray(places), part] = samples.mean(axis=0)
    return out
