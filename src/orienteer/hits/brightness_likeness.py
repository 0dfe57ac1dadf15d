"""Test whether a hit is as bright as the particle: a particle has about one brightness, junk has any.

The brightness of a particle's hits depends on the pulse and on how well it met the particle, not on the
orientation.  Debris and droplets have all sizes, and two particles are brighter than one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.evidence import Evidence

# A quarter of a normal distribution lies between the mean and this many standard deviations to one side.
_QUARTER = 0.6745
_LEAST_SPREAD = 0.05


@dataclass(frozen=True)
class BrightnessLikeness:
    """The logarithm of the brightness of a particle: its median, and standard deviations to both sides.

    They are learned from quartiles of the hits, so that a few hits of something else hardly matter.
    """

    middle: float
    below: float
    above: float

    @classmethod
    def of(cls, core: Evidence) -> "BrightnessLikeness":
        """Learned from hits of the particle."""
        low, middle, high = (float(x) for x in np.quantile(_logarithm(core), [0.25, 0.5, 0.75]))
        below, above = (middle - low) / _QUARTER, (high - middle) / _QUARTER
        return cls(middle, max(below, _LEAST_SPREAD), max(above, _LEAST_SPREAD))

    def deviation(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) deviation from the median, in standard deviations of its side; negative for fainter hits."""
        rest = _logarithm(hits) - self.middle
        return np.asarray(rest / np.where(rest < 0, self.below, self.above))

    def distance(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) squared deviation from the median, in standard deviations of its side."""
        return self.deviation(hits) ** 2


def _logarithm(hits: Evidence) -> NDArray[np.float64]:
    return np.log(np.maximum(np.asarray(hits.brightness, np.float64), 1e-3))
