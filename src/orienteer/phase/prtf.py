"""The phase retrieval transfer function: how well the phases repeat from start to start, shell by shell.

It is |<F>| / sqrt(I): the modulus of the mean over the starts, divided by the measured amplitude.  All are
summed over the measured voxels of each shell first, so that dark voxels, which are mostly noise, count for
little.  It is 1 if all starts have the same phases and fit the data; if phases are random, it falls to about
0.9 / sqrt(number of starts).  By custom the density is called resolved to where it falls below 1/e.

Where the starts are stronger than the data, their own mean amplitude takes the place of the measured one.
Otherwise a wrong density would seem to repeat better than perfectly in faint shells.  How far amplitudes are
from the data is for the R-factor to say.

It measures repeatability, not truth.  Starts that share a wrong support agree on a wrong density; starts that
are averaged without alignment disagree even if all are right.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.phase.half_grid import shell_sums

THRESHOLD = math.exp(-1)


@dataclass(frozen=True, eq=False)
class Prtf:
    """Repeatability of the phases, by shell.

    q_inv_A : (S,) float64, of the shells in which something was measured.
    values : (S,) float64, from 0 to 1.
    n_voxels : (S,) int64, measured voxels; those at q and -q count as one.
    n_starts : starts that were averaged.
    """

    q_inv_A: NDArray[np.float64]
    values: NDArray[np.float64]
    n_voxels: NDArray[np.int64]
    n_starts: int

    @property
    def floor(self) -> float:
        """The value for starts with random phases: the mean length of a random walk, per step."""
        return math.sqrt(math.pi / (4 * self.n_starts)) if self.n_starts > 1 else 1.0

    @property
    def resolution_A(self) -> float | None:
        """Full period at which the curve first falls below 1/e; the edge of the data if it never does.

        None if it is below from the beginning, or if so few starts were averaged that even random phases
        would stay above 1/e.
        """
        if self.floor >= THRESHOLD or not len(self.values) or not self.values[0] >= THRESHOLD:
            return None
        below = np.flatnonzero(self.values < THRESHOLD)
        if not len(below):
            return float(1 / self.q_inv_A[-1]) if self.q_inv_A[-1] > 0 else None
        last = int(below[0]) - 1
        high, low = self.values[last], self.values[last + 1]
        share = (high - THRESHOLD) / (high - low)
        return float(1 / (self.q_inv_A[last] + share * (self.q_inv_A[last + 1] - self.q_inv_A[last])))

    @property
    def reaches_the_edge(self) -> bool:
        """Whether the curve stays above 1/e to the edge of the data."""
        return bool(len(self.values)) and bool((self.values >= THRESHOLD).all())

    def in_brief(self) -> str:
        """The same in a few words."""
        if self.floor >= THRESHOLD:
            return "too few starts to tell whether phases repeat"
        reach_A = self.resolution_A
        return "phases do not repeat" if reach_A is None else f"phases repeat to {reach_A:.3g} A"

    def words(self) -> str:
        """The same in a sentence."""
        if self.n_starts == 1:
            return "Only one start was averaged, so it is not known whether its phases repeat."
        if self.floor >= THRESHOLD:
            return (
                f"{counted(self.n_starts, 'averaged start')} are too few to tell how far their phases repeat."
            )
        if self.resolution_A is None:
            return "The phases do not repeat from start to start: the density should not be trusted."
        if self.reaches_the_edge:
            return f"The phases repeat to the edge of the data, {self.resolution_A:.3g} A."
        return f"The phases repeat to {self.resolution_A:.3g} A, where their transfer falls below 1/e."


def prtf(
    transforms: Array, amplitudes: Array, measured: Array, voxel_inv_A: float, background: float = 0.0
) -> Prtf:
    """How well the phases of aligned starts repeat.

    transforms : (M, n, n, n // 2 + 1) complex, of the densities, aligned with each other.
    amplitudes : (n, n, n // 2 + 1) real, square roots of the intensity, background included.
    measured : (n, n, n // 2 + 1) bool.
    voxel_inv_A : edge of a voxel of Fourier space, 1 / (n voxel_A).
    background : flat intensity that does not come from the particle, and is subtracted.
    """
    xp: Any = array_namespace(transforms)
    if not len(transforms):
        raise OrienteerError("there are no starts whose phases could be compared.")
    given = xp.sqrt(xp.maximum(amplitudes.astype(xp.float64) ** 2 - background, 0))
    repeated = xp.abs(transforms.mean(axis=0))
    own = sum(xp.abs(one) for one in transforms) / len(transforms)
    kept, starts, data, count = (
        to_numpy(shell_sums(part, measured)) for part in (repeated, own, given, xp.ones_like(given))
    )
    seen = data > 0
    values = kept[seen] / np.maximum(data, starts)[seen]
    q_inv_A = np.arange(len(data), dtype=np.float64) * voxel_inv_A
    return Prtf(q_inv_A[seen], values, np.ceil(count[seen] / 2).astype(np.int64), len(transforms))
