"""How alike the intensities of two halves are, before any phasing."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.comparison import compare
from orienteer.volume.volume import Volume

# The correlation of two shells above which they show the same.
_AGREES = 0.5
# The same for two halves of which the mean is judged (Rosenthal and Henderson 2003).
HALVES_AGREE = 0.143
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

    def agrees_to_A(self, diameter_A: float, order: int = 1) -> float | None:
        """To where the two show the same speckles; None: nowhere.

        As in two halves of the data of which the whole would correlate by a half with the truth: 0.143.  But
        a shell of few speckles correlates by more than that in any two intensities, and the turn between them
        was chosen so that it does.  So it must correlate by twice its scatter, too.

        diameter_A : of the particle, which sets the size of a speckle.
        order : of the symmetry that both were given; equivalent speckles count once.
        """
        # A shell of radius s speckles has 4 pi s^2 of them, each with its mate at -q.
        speckles = 2 * np.pi * (self.q_inv_A * diameter_A) ** 2 / order
        return self.falls_below(np.maximum(HALVES_AGREE, 2 / np.sqrt(np.maximum(speckles, 1e-12))))

    def falls_below(self, level: float | NDArray[np.float64]) -> float | None:
        """Where the correlation first falls below a level beyond the innermost two shells, in A.

        level : one, or one for each shell (S,); shells in which it is 1 and more say nothing.
        None where it does so at once.
        """
        levels = np.broadcast_to(np.asarray(level, np.float64), self.correlation.shape)
        known = np.flatnonzero(np.isfinite(self.correlation[1:]) & (levels[1:] < 1)) + 1
        if not len(known):
            return None
        first = min(int(known[0]) + _FEW_VOXELS, int(known[-1])) if np.ndim(level) == 0 else int(known[0])
        excess = np.where(np.isfinite(self.correlation), self.correlation - levels, -1.0)
        below = np.flatnonzero(excess[first:] < 0) + first
        last = int(below[0]) - 1 if len(below) else len(excess) - 1
        if last < first:
            return None
        q = float(self.q_inv_A[last])
        if len(below) and np.isfinite(self.correlation[last + 1]):
            share = excess[last] / (excess[last] - excess[last + 1])
            q += float(share * (self.q_inv_A[last + 1] - self.q_inv_A[last]))
        return 1 / q


def compare_intensities(first: Volume, second: Volume, edge_inv_A: float = np.inf) -> IntensityAgreement:
    """Turn the second onto the first and compare them shell by shell; their grids may differ.

    edge_inv_A : |q| of the outermost pixel.  Voxels beyond it hold the radial mean carried on, which breaks
        off there in both alike: shells that reach so far are left out.
    """
    found = compare(first, second)
    q, correlation = found.curve.q_inv_A, found.curve.correlation
    step = float(q[1] - q[0]) if len(q) > 1 else 0.0
    inside = q + step / 2 <= edge_inv_A * (1 + 1e-6)
    return IntensityAgreement(found.rotation, q, np.where(inside, correlation, np.nan))


def worse_of(found: Iterable[IntensityAgreement]) -> IntensityAgreement:
    """Of several agreements the one that reaches least far."""
    return max(found, key=lambda one: one.resolution_A or np.inf)
