"""Whether a hit is as bright as the particle: a particle has one brightness from all sides, junk has any.

How bright the hits of a particle are depends on the pulse and on how well it was met, which its orientation
does not know.  Debris and droplets are of all sizes, and two particles are brighter than one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.evidence import Evidence

# A quarter of what is normal lies between the mean and this many standard deviations to one side.
_QUARTER = 0.6745
_LEAST_SPREAD = 0.05


@dataclass(frozen=True)
class BrightnessLikeness:
    """The logarithm of the brightness of a particle: its middle, and standard deviations to both sides.

    Both are learned from the middle half of the hits, so that few hits of something else hardly matter.
    """

    middle: float
    below: float
    above: float

    @classmethod
    def of(cls, core: Evidence) -> "BrightnessLikeness":
        """Learned from hits that are of the particle."""
        low, middle, high = (float(x) for x in np.quantile(_logarithm(core), [0.25, 0.5, 0.75]))
        below, above = (middle - low) / _QUARTER, (high - middle) / _QUARTER
        return cls(middle, max(below, _LEAST_SPREAD), max(above, _LEAST_SPREAD))

    def deviation(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) from the middle, in standard deviations to its side; negative where fainter."""
        rest = _logarithm(hits) - self.middle
        return np.asarray(rest / np.where(rest < 0, self.below, self.above))

    def distance(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) squared distance from the middle, in standard deviations to its side."""
        return self.deviation(hits) ** 2


def _logarithm(hits: Evidence) -> NDArray[np.float64]:
    return np.log(np.maximum(np.asarray(hits.brightness, np.float64), 1e-3))
