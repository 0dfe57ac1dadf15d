"""Whether the fringes of a hit are those of one particle: several particles have stronger and finer ones.

Speckles of a single particle have fringes too, up to its diameter, and stronger ones where there is more
light.  How strong they are is learned for each band of separations, and how much that varies with
orientation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.evidence import Evidence

_BINS = 6
# Logarithms of strengths are never taken to vary less than this.
_LEAST_SPREAD = 0.05
# Added to strengths, so that the weakest have logarithms that are not all noise.
_OFFSET = 1.0


@dataclass(frozen=True, eq=False)
class FringeLikeness:
    """The fringes of a particle in J bands, and in a last place how much it differs from a sphere.

    noise, slope : (J + 1,) typical strength is noise + slope x visibility of the hit.
    mean : (J + 1,) of the logarithm of strengths relative to that.
    covariance : (J + 1, J + 1) of that logarithm.
    """

    noise: NDArray[np.float64]
    slope: NDArray[np.float64]
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def of(cls, core: Evidence) -> "FringeLikeness":
        """Learned from hits that are of the particle."""
        noise, slope = _typical(core)
        logarithm = _logarithm(core, noise, slope)
        covariance = np.cov(logarithm.T) + _LEAST_SPREAD**2 * np.eye(logarithm.shape[1])
        return cls(noise, slope, logarithm.mean(axis=0), covariance)

    def logarithm(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, J + 1) logarithms of strengths, relative to typical ones of hits as visible as these."""
        return _logarithm(hits, self.noise, self.slope)

    def excess(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, J) by how many standard deviations fringes are stronger than those of the particle."""
        rest = self.logarithm(hits) - self.mean
        return np.asarray(rest / np.sqrt(np.diag(self.covariance)))[:, :-1]

    def distance(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) squared distance from the particle, in units of what chance and orientation explain."""
        rest = self.logarithm(hits) - self.mean
        return np.asarray((rest * np.linalg.solve(self.covariance, rest.T).T).sum(axis=1))


def _logarithm(hits: Evidence, noise: NDArray[np.float64], slope: NDArray[np.float64]) -> NDArray[np.float64]:
    typical = noise + slope * hits.visibility[:, None]
    return np.asarray(np.log((_strengths(hits) + _OFFSET) / (typical + _OFFSET)))


def _typical(core: Evidence) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strengths at no visibility and their slope, (J + 1,) each, from medians of equally visible hits."""
    order = np.argsort(core.visibility, kind="stable")
    bins = np.array_split(order, min(_BINS, max(len(order) // 20, 1)))
    x = np.array([np.median(core.visibility[rows]) for rows in bins])
    y = np.array([np.median(_strengths(core)[rows], axis=0) for rows in bins])
    middle, centre = x.mean(), y.mean(axis=0)
    slope = ((x - middle)[:, None] * (y - centre)).sum(axis=0) / max(((x - middle) ** 2).sum(), 1e-12)
    # Neither noise nor light can make fringes weaker.
    slope = np.clip(slope, 0, centre / max(middle, 1e-12))
    return centre - slope * middle, slope


def _strengths(hits: Evidence) -> NDArray[np.float64]:
    """(N, J + 1) fringes of all bands, and how much the rings differ from those of a sphere."""
    return np.column_stack([hits.fringes, hits.misfit]).astype(np.float64)
