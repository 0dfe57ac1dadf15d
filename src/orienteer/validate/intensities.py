"""How well the intensities of two halves agree, before any phasing.

Any two intensities correlate somewhat after one was turned to the best fit.  So a statistical test decides
whether two show the same speckles.  On the shell of radius s speckles, |q| = s / D for a particle of
diameter D, about pi s^2 speckles are independent: half of 4 pi s^2 by Friedel's law, and about half of these
again, because few particles fill a sphere of their diameter; a symmetry of order g divides the number by g.
The correlations c_s up to the resolution of the claim give

    z = sum n_s artanh(c_s) / sqrt(sum n_s),

which is a standard normal number for unrelated intensities at a fixed turn (Fisher 1915).  But the turn is
the best of about K = 8 pi^2 s^3 / g^2 turns that can be distinguished at that resolution.  So z must be so
large that the largest of K normal numbers exceeds it only with a chance of 1e-4.  This was tested on pairs of
unrelated bodies.  Of 160 pairs without symmetry, of thirty balls or of an ellipsoid full of them, two passed;
of 137 with the symmetries D2 and I, none; of 80 bodies of eight balls each, which often share a pair of
balls, seven.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.alignment import look_alike_rotations
from orienteer.compare.comparison import compare
from orienteer.compare.crossing import Crossing, crossing_of
from orienteer.compare.shells import n_shells
from orienteer.volume.volume import Volume

# Shells with a larger correlation than this show the same.
_AGREES = 0.5
# The same threshold for two halves if their mean is judged (Rosenthal and Henderson 2003).
HALVES_AGREE = 0.143
# An intensity looks the same after a turn if its correlation with itself reaches this share of that between
# the halves.
_AS_ALIKE = 0.8
# The chance that unrelated intensities pass the test, if z is normal.
_CHANCE = 1e-4
# Larger correlations are cut to this: how close they are to 1 depends on the voxels, not on the speckles.
_LARGEST_CORRELATION = 0.99


@dataclass(frozen=True, eq=False)
class IntensityAgreement:
    """Two intensities, one turned onto the other.

    quaternion : (4,), the turn of the second that gives the first.
    q_inv_A, correlation : (S,) by shell, relative to the radial mean; NaN where one of them has no data.
    diameter_A : of the particle, which sets the size of a speckle.
    order : of the symmetry that was given to both; equivalent speckles count once.
    """

    quaternion: NDArray[np.float64]
    q_inv_A: NDArray[np.float64]
    correlation: NDArray[np.float64]
    diameter_A: float
    order: int = 1

    @property
    def resolution_A(self) -> float | None:
        """Resolution at which the correlation falls below 0.5; None if it is nowhere above."""
        return _period(self._crossing(_AGREES))

    @property
    def agrees_to_A(self) -> float | None:
        """Resolution to which the two show the same speckles; None: nowhere.

        To there the correlation of the halves is above 0.143, at which all the data would correlate with the
        truth by 0.5; and it must be larger than turning alone could make it (see the test above).
        """
        found = self._crossing(HALVES_AGREE)
        if found.q is None:
            return None
        radius, reach = self.q_inv_A * self.diameter_A, found.q * self.diameter_A
        used = (radius <= reach * (1 + 1e-9)) & np.isfinite(self.correlation)
        used[: self.first_shell] = False
        number = np.pi * radius[used] ** 2 * radius[1] / self.order
        correlation = np.clip(self.correlation[used], -_LARGEST_CORRELATION, _LARGEST_CORRELATION)
        z = float((number * np.arctanh(correlation)).sum() / np.sqrt(number.sum()))
        n_turns = max(1.0, 8 * np.pi**2 * reach**3 / self.order**2)
        return _period(found) if z >= NormalDist().inv_cdf(1 - _CHANCE / n_turns) else None

    @property
    def first_shell(self) -> int:
        """The first shell that counts: within one speckle of the centre only the particle's size shows."""
        known = np.flatnonzero(np.isfinite(self.correlation))
        inside = int(np.ceil(1 / (self.q_inv_A[1] * self.diameter_A) - 1e-6))
        return max(1, inside, int(known[known > 0][0]) if (known > 0).any() else 1)

    def _crossing(self, level: float) -> Crossing:
        return crossing_of(
            self.q_inv_A, self.correlation - level, self.q_inv_A**2, first_shell=self.first_shell,
            shells_per_speckle=1 / (self.q_inv_A[1] * self.diameter_A),
        )  # fmt: skip


def _period(found: Crossing) -> float | None:
    return None if found.q is None else 1 / found.q


def compare_intensities(
    first: Volume,
    second: Volume,
    diameter_A: float,
    order: int = 1,
    edge_inv_A: float = np.inf,
    near: NDArray[np.float64] | None = None,
) -> IntensityAgreement:
    """Turn the second onto the first and compare them shell by shell; their grids may differ.

    diameter_A, order : of the particle, and of its symmetry that was given to both.
    edge_inv_A : |q| of the outermost pixel.  Voxels beyond it hold only a continued radial mean, which ends
        at the same radius in both: shells that reach so far are left out.
    near : (4,), the turn of the second, if it is known to half a speckle.
    """
    found = compare(first, second, near=near)
    q, correlation = found.curve.q_inv_A, found.curve.correlation
    step = float(q[1] - q[0]) if len(q) > 1 else 0.0
    inside = q + step / 2 <= edge_inv_A * (1 + 1e-6)
    return IntensityAgreement(found.rotation, q, np.where(inside, correlation, np.nan), diameter_A, order)


def worse_of(found: Iterable[IntensityAgreement]) -> IntensityAgreement:
    """The agreement with the coarsest resolution of several."""
    return max(found, key=lambda one: one.resolution_A or np.inf)


def look_alikes(volume: Volume, agreement: IntensityAgreement) -> NDArray[np.float64]:
    """Rotations (K, 4) after which an intensity agrees with itself about as well as with the other half.

    A particle may have an unknown symmetry; then several poses of a frame are equivalent.
    agreement : of this half with the other.
    """
    # Use only shells on which the halves agree: near the centre a virus is round, and what is left is noise.
    alike = np.nan_to_num(agreement.correlation, nan=-1.0) >= _AGREES
    alike[: agreement.first_shell] = False
    if not alike.any():
        return np.array([[1.0, 0.0, 0.0, 0.0]])
    q, correlation = agreement.q_inv_A[alike], agreement.correlation[alike]
    voxel = volume.voxel_size[0]
    last = min(int(q.max() / voxel), n_shells(volume.shape[0]) - 1)
    first = min(max(1, int(q.min() / voxel)), last)
    least = _AS_ALIKE * float(correlation.mean())
    return look_alike_rotations(volume.values, least, first_shell=first, last_shell=last)
