"""The score of a shot: a weighted sum of its photons, and what that sum is for shots without particle."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

# Background photons that a pixel is credited with beforehand, as many as pixels like it have.
_PRIOR_PHOTONS = 4.0
# A pixel is lit when the background alone would make it so bright in fewer shots than this share.
LIT_SHARE = 0.01
# Levels that are exact; above them photons are as good as normal.
_N_LEVELS = 1000


@dataclass(frozen=True)
class Score:
    """How surely a shot has met a particle, in standard deviations of empty shots.

    Photons K of an empty shot are Poisson with mean s b, where the strength s of the background b varies with
    mean 1 and variance v.  A hit has m more on average.  The logarithm of the likelihood ratio weighs photons
    with u = ln(1 + m / b); of all sums Σ u K - c Σ K the one that tells b from b + m best, in spite of s, is
    taken (Fisher's discriminant).

    weight : (P,) float32, w = u - c; 0 in unused pixels.
    mean, skewness : of Σ w K over empty shots.
    scatter : variance of Σ w K for a background of mean strength.
    photons : of an empty shot.
    variance : v.
    of_signal : Σ w m, by how much a typical hit has more.
    """

    weight: NDArray[np.float32]
    mean: float
    scatter: float
    photons: float
    variance: float
    skewness: float
    of_signal: float

    @classmethod
    def between(
        cls, background: NDArray[np.float64], signal: NDArray[np.float64] | None, variance: float
    ) -> "Score":
        """The score that tells hits from empty shots.

        background : (P,) photons of an empty shot, positive in used pixels and 0 in others.
        signal : (P,) photons that a hit has more; None while no hit is known: then photons are counted.
        variance : of the strength of the background, whose mean is 1.
        """
        used = background > 0
        b = background[used]
        m = b if signal is None else signal[used]
        u = np.ones(len(b)) if signal is None else np.log1p(m / b)
        E, B = _sum(u * b), _sum(b)
        scatter = np.array([[_sum(u * u * b) + variance * E * E, E * (1 + variance * B)], [0.0, 0.0]])
        scatter[1] = scatter[0, 1], B * (1 + variance * B)
        w = u
        if np.linalg.det(scatter) > 1e-6 * scatter[0, 0] * scatter[1, 1]:
            of_u, of_1 = np.linalg.solve(scatter, [_sum(u * m), _sum(m)])
            if of_u > 0:
                w = u + of_1 / of_u
        E, A = _sum(w * b), _sum(w * w * b)
        width = float(np.sqrt(A + variance * E * E))
        # Third cumulant, with a strength that is log-normal.
        third = _sum(w**3 * b) + 3 * variance * A * E + variance**2 * (3 + variance) * E**3
        weight = np.zeros(len(background), np.float32)
        weight[used] = w
        return cls(weight, E, A, B, variance, third / width**3, _sum(w * m))

    def of(self, weighted: NDArray[np.float64], photons: NDArray[Any]) -> NDArray[np.float64]:
        """Scores (N,) of shots with these weighted sums and these photons, (N,) each.

        They are made as good as normal by taking their skewness away: this inverts the first term of Cornish
        and Fisher's expansion, and is nearly a square root of counts.
        """
        # An empty shot with many photons has met a strong background, whose photons scatter more.
        strength = np.maximum(1 + self.variance * photons, 0) / (1 + self.variance * self.photons)
        z = (weighted - self.mean) / np.sqrt(self.scatter * strength + self.variance * self.mean**2)
        c = max(self.skewness, 1e-6) / 6
        return np.asarray((np.sqrt(np.maximum(1 + 4 * c * (z + c), 0)) - 1) / (2 * c))


def _sum(values: NDArray[np.float64]) -> float:
    """A sum on this thread: a scalar product would wake the threads of a library, and wait for them."""
    return float(values.sum())


def rates(sums: NDArray[np.float64], n: float, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Expected photons (P,) from sums (P,) over n shots; where they are few, drawn to the mean of the group.

    group : (P,) a number from 0 for each pixel; -1: unused, where the rate is 0.
    """
    used = group >= 0
    n_groups = int(group.max(initial=0)) + 1
    size = np.maximum(np.bincount(group[used], minlength=n_groups), 1)
    photons = np.maximum(np.bincount(group[used], weights=sums[used], minlength=n_groups), 0)
    mean = (photons + 1) / (size * max(n, 1))
    found = np.zeros(len(sums))
    prior = mean[group[used]]
    found[used] = (np.maximum(sums[used], 0) + _PRIOR_PHOTONS) / (max(n, 1) + _PRIOR_PHOTONS / prior)
    return found


def lit_from(background: NDArray[np.float64]) -> NDArray[np.float32]:
    """Photons (P,) from which a pixel is lit: the background has so many in less than 1 % of all shots."""
    level = np.searchsorted(_most_background(), background, side="right").astype(np.float32) + 1
    bright = background > _most_background()[-1]
    # Cornish and Fisher's expansion of the quantile, with one half for whole numbers.
    level[bright] = np.ceil(background[bright] + 2.326 * np.sqrt(background[bright]) + 1.24)
    return level


@cache
def _most_background() -> NDArray[np.float64]:
    """Background that still has k photons or more in less than 1 % of all shots, for k = 1, 2, ..."""
    return np.asarray(gammaincinv(np.arange(1, _N_LEVELS + 1), LIT_SHARE), np.float64)
