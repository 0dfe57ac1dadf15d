"""Test whether a hit is as large as the particle: the sharpest single test if junk has all sizes.

A particle that is not a ball looks larger from some sides than from others, so the distribution of its sizes
may have several peaks.  The distribution is used as it is: the distance of a hit grows as fewer hits of the
particle have its size.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.evidence import Evidence

# Step of the logarithm of the size between entries of the density.
_STEP = 0.005
# Smallest width of a peak.
_LEAST_WIDTH = 0.01


@dataclass(frozen=True, eq=False)
class SizeLikeness:
    """The distribution of the sizes of a particle.

    size_A : median diameter.
    first : logarithm of the size at the first entry of the density.
    density : (B,) of the logarithm of the size, relative to its largest value, in steps of 0.005.
    """

    size_A: float
    first: float
    density: NDArray[np.float64]

    @classmethod
    def of(cls, core: Evidence) -> "SizeLikeness":
        """Learned from hits of the particle: a sum of Gaussians with the width of Silverman's rule."""
        logarithm = np.log(core.size_A.astype(np.float64))
        low, high = np.quantile(logarithm, [0.25, 0.75])
        width = max(0.9 * float(high - low) / 1.34 * len(logarithm) ** -0.2, _LEAST_WIDTH)
        first = float(logarithm.min()) - 4 * width
        n = int((float(logarithm.max()) + 4 * width - first) / _STEP) + 2
        counts = np.bincount(((logarithm - first) / _STEP + 0.5).astype(np.int64), minlength=n)
        reach = int(4 * width / _STEP) + 1
        bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) * _STEP / width) ** 2)
        density = np.convolve(counts, bell, mode="full")[reach : reach + n]
        return cls(float(np.median(core.size_A)), first, density / density.max())

    def distance(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) squared distance at which a normal distribution has the same density, -2 ln density."""
        place = (np.log(np.maximum(hits.size_A, 1e-3)) - self.first) / _STEP
        density = np.interp(place, np.arange(len(self.density)), self.density, left=0, right=0)
        return np.asarray(-2 * np.log(np.maximum(density, 1e-6)))
