"""Test whether a hit has the fringes of a single particle: several particles have stronger and finer ones.

The speckles of a single particle are fringes too, of separations up to its diameter, and stronger in brighter
hits.  For each band of separations, their usual strength and its variation with orientation are learned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.evidence import Evidence

_BINS = 6
# Smallest standard deviation of the logarithms of strengths.
_LEAST_SPREAD = 0.05
# Added to strengths, so that noise does not dominate the logarithms of the weakest.
_OFFSET = 1.0


@dataclass(frozen=True, eq=False)
class FringeLikeness:
    """The fringes of a particle in J bands, and as last entry how much its profile differs from a sphere's.

    noise, slope : (J + 1,) the typical strength is noise + slope x visibility of the hit.
    mean : (J + 1,) of the logarithm of the strengths relative to the typical one.
    covariance : (J + 1, J + 1) of this logarithm.
    """

    noise: NDArray[np.float64]
    slope: NDArray[np.float64]
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def of(cls, core: Evidence) -> "FringeLikeness":
        """Learned from hits of the particle."""
        noise, slope = _typical(core)
        logarithm = _logarithm(core, noise, slope)
        covariance = np.cov(logarithm.T) + _LEAST_SPREAD**2 * np.eye(logarithm.shape[1])
        return cls(noise, slope, logarithm.mean(axis=0), covariance)

    def logarithm(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, J + 1) logarithms of the strengths relative to those typical for the visibility of each hit."""
        return _logarithm(hits, self.noise, self.slope)

    def excess(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, J) number of standard deviations by which fringes are stronger than those of the particle."""
        rest = self.logarithm(hits) - self.mean
        return np.asarray(rest / np.sqrt(np.diag(self.covariance)))[:, :-1]

    def distance(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) squared distance from the particle, in units of the spread by noise and orientation."""
        rest = self.logarithm(hits) - self.mean
        return np.asarray((rest * np.linalg.solve(self.covariance, rest.T).T).sum(axis=1))


def _logarithm(hits: Evidence, noise: NDArray[np.float64], slope: NDArray[np.float64]) -> NDArray[np.float64]:
    typical = noise + slope * hits.visibility[:, None]
    return np.asarray(np.log((_strengths(hits) + _OFFSET) / (typical + _OFFSET)))


def _typical(core: Evidence) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strength at visibility 0 and its slope, (J + 1,) each, from medians over hits of similar visibility."""
    order = np.argsort(core.visibility, kind="stable")
    bins = np.array_split(order, min(_BINS, max(len(order) // 20, 1)))
    x = np.array([np.median(core.visibility[rows]) for rows in bins])
    y = np.array([np.median(_strengths(core)[rows], axis=0) for rows in bins])
    middle, centre = x.mean(), y.mean(axis=0)
    slope = ((x - middle)[:, None] * (y - centre)).sum(axis=0) / max(((x - middle) ** 2).sum(), 1e-12)
    # Noise and slope cannot be negative.
    slope = np.clip(slope, 0, centre / max(middle, 1e-12))
    return centre - slope * middle, slope


def _strengths(hits: Evidence) -> NDArray[np.float64]:
    """(N, J + 1) strengths in all bands, and the misfit of the rings to a sphere."""
    return np.column_stack([hits.fringes, hits.misfit]).astype(np.float64)
