"""How alike the intensities of two halves are, before any phasing."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.alignment import align_intensities
from orienteer.compare.turning import CUBIC, LINEAR, filled, sample, spline_coefficients
from orienteer.compute.arrays import array_namespace
from orienteer.volume.volume import Volume

_SAME = 1e-6
# The correlation of two shells above which they show the same.
_AGREES = 0.5


@dataclass(frozen=True, eq=False)
class IntensityAgreement:
    """Two intensities, one turned onto the other.

    quaternion : (4,), the turn of the second that gives the first.
    q_inv_A, correlation : (S,) by shell, about the radial profile; NaN where one of them has nothing.
    """

    quaternion: NDArray[np.float64]
    q_inv_A: NDArray[np.float64]
    correlation: NDArray[np.float64]

    @property
    def resolution_A(self) -> float | None:
        """Where the correlation falls below 0.5; None: nowhere is it above."""
        return self.falls_below(_AGREES)

    def falls_below(self, level: float) -> float | None:
        """Where the correlation first falls below a level beyond the innermost two shells, in A.

        None where it does so at once: those shells have few voxels.
        """
        values = np.nan_to_num(self.correlation, nan=-1.0)
        first = min(3, len(values) - 1)
        below = np.flatnonzero(values[first:] < level) + first
        last = int(below[0]) - 1 if len(below) else len(values) - 1
        if last < first:
            return None
        q = float(self.q_inv_A[last])
        if len(below) and np.isfinite(self.correlation[last + 1]):
            share = (values[last] - level) / (values[last] - values[last + 1])
            q += float(share * (self.q_inv_A[last + 1] - self.q_inv_A[last]))
        return 1 / q


def compare_intensities(first: Volume, second: Volume) -> IntensityAgreement:
    """Turn the second onto the first and compare them shell by shell; their grids may differ."""
    other = on_grid_of(first, second)
    found = align_intensities(first.values, other.values)
    q = found.shells.radius * float(first.voxel_size[0])
    return IntensityAgreement(found.quaternion, q, found.shells.correlation)


def worse_of(found: Iterable[IntensityAgreement]) -> IntensityAgreement:
    """Of several agreements the one that reaches least far."""
    return max(found, key=lambda one: one.resolution_A or np.inf)


def on_grid_of(reference: Volume, moving: Volume) -> Volume:
    """The moving intensity at the voxels of the reference, by cubic splines; NaN where it has nothing."""
    zoom = float(reference.voxel_size[0] / moving.voxel_size[0])
    n = reference.shape[0]
    if moving.shape == reference.shape and abs(zoom - 1) < _SAME:
        return moving
    xp = array_namespace(moving.values)
    axis = (np.arange(n) - n // 2) * zoom
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    identity = np.eye(3)[None]
    values = xp.astype(moving.values, xp.float64)
    cube = sample(spline_coefficients(filled(values), CUBIC), points, identity, CUBIC).reshape(n, n, n)
    missing = sample(xp.astype(xp.isnan(values), xp.float32), points, identity, LINEAR).reshape(n, n, n)
    half = moving.shape[0] // 2
    outside = xp.asarray((np.abs(points).max(axis=1) > half).reshape(n, n, n))
    cube = xp.where(outside | (missing > 0.5), xp.asarray(np.nan), cube)
    return reference.with_values(xp.astype(cube, xp.float32))
