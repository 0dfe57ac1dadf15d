"""How alike the intensities of two halves are, before any phasing."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.comparison import compare
from orienteer.volume.volume import Volume

# The correlation of two shells above which they show the same.
_AGREES = 0.5
# Shells about the centre, or about the hole there, that have few voxels and say little.
_FEW_VOXELS = 2


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

        None where it does so at once.
        """
        known = np.flatnonzero(np.isfinite(self.correlation[1:])) + 1
        if not len(known):
            return None
        first = min(int(known[0]) + _FEW_VOXELS, int(known[-1]))
        values = np.nan_to_num(self.correlation, nan=-1.0)
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
    found = compare(first, second)
    return IntensityAgreement(found.rotation, found.curve.q_inv_A, found.curve.correlation)


def worse_of(found: Iterable[IntensityAgreement]) -> IntensityAgreement:
    """Of several agreements the one that reaches least far."""
    return max(found, key=lambda one: one.resolution_A or np.inf)
