"""The score of a shot: a weighted sum of its photons, compared with the same sum of empty shots."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

# Photons of prior knowledge added to each pixel's background, at the mean rate of its group.
_PRIOR_PHOTONS = 4.0
# A pixel is lit if the background alone makes it so bright in less than this share of shots.
LIT_SHARE = 0.01
# Thresholds up to this number of photons are exact; above it, counts are nearly normal.
_N_LEVELS = 1000


@dataclass(frozen=True)
class Score:
    """How certainly a shot has met a particle, in standard deviations of empty shots.

    Photons K of an empty shot are Poisson with mean s b, where the strength s of the background b varies with
    mean 1 and variance v.  A hit has m more on average.  The logarithm of the likelihood ratio gives photons
    the weight u = ln(1 + m / b).  Among the sums Σ u K - c Σ K, Fisher's discriminant picks the c that
    separates b + m from b best although s varies.

    weight : (P,) float32, w = u - c; 0 in unused pixels.
    mean, skewness : of Σ w K over empty shots.
    scatter : variance of Σ w K for a background of mean strength.
    photons : mean photons of an empty shot.
    variance : v.
    of_signal : Σ w m, by which the sum of a typical hit is larger.
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
        """The score that separates hits from empty shots.

        background : (P,) photons of an empty shot, positive in used pixels and 0 in others.
        signal : (P,) additional photons of a hit; None if no hit is known: all photons then weigh the same.
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
        # Third cumulant, if the strength is log-normal.
        third = _sum(w**3 * b) + 3 * variance * A * E + variance**2 * (3 + variance) * E**3
        weight = np.zeros(len(background), np.float32)
        weight[used] = w
        return cls(weight, E, A, B, variance, third / width**3, _sum(w * m))

    def of(self, weighted: NDArray[np.float64], photons: NDArray[Any]) -> NDArray[np.float64]:
        """Scores (N,) of shots with these weighted sums and these photons, (N,) each.

        Removing the skewness makes the scores of empty shots nearly normal: this inverts the first term of
        Cornish and Fisher's expansion, and resembles a square root of counts.
        """
        # An empty shot with many photons had a strong background, whose photons also vary more.
        strength = np.maximum(1 + self.variance * photons, 0) / (1 + self.variance * self.photons)
        z = (weighted - self.mean) / np.sqrt(self.scatter * strength + self.variance * self.mean**2)
        c = max(self.skewness, 1e-6) / 6
        return np.asarray((np.sqrt(np.maximum(1 + 4 * c * (z + c), 0)) - 1) / (2 * c))


def _sum(values: NDArray[np.float64]) -> float:
    """A sum on this thread; a scalar product would wait for the threads of the linear algebra library."""
    return float(values.sum())


def rates(sums: NDArray[np.float64], n: float, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Expected photons (P,) from sums (P,) over n shots; pixels with few photons move to their group's mean.

    group : (P,) number of the group of each pixel, from 0; -1: unused, with rate 0.
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
    """Photons (P,) from which a pixel is lit: the background reaches them in less than 1 % of all shots."""
    level = np.searchsorted(_most_background(), background, side="right").astype(np.float32) + 1
    bright = background > _most_background()[-1]
    # Cornish and Fisher's expansion of the quantile, plus one half because photons are whole numbers.
    level[bright] = np.ceil(background[bright] + 2.326 * np.sqrt(background[bright]) + 1.24)
    return level


@cache
def _most_background() -> NDArray[np.float64]:
    """Largest background that gives k photons or more in at most 1 % of all shots, for k = 1, 2, ..."""
    return np.asarray(gammaincinv(np.arange(1, _N_LEVELS + 1), LIT_SHARE), np.float64)
