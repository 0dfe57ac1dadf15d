"""Estimate how much the fluence varies from shot to shot, before anything is known of the particle.

The photons of a frame vary with its fluence and with its orientation.  Fluence changes all rings of the
detector by the same factor.  Orientation does not: near the centre a particle scatters the same in every
orientation, and what one ring gains another may lose.  So among all weighted averages of bright rings, the
one that varies least gives an upper limit for the variation of the fluence.  Dark rings are left out, because
they may hold an unknown background, which is the same in every shot.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.nuisances.screening import RingPhotons

# Weight of photon noise in the choice of the average, in standard errors of its variance over all frames.
_CAUTION = 2.0
_FEWEST_FRAMES = 20
# The brightest rings that together hold this share of the information are used.
_BRIGHT_SHARE = 0.8


class FluenceSpread(NamedTuple):
    """Relative standard deviation of the fluence over frames.

    value : an estimate that is too large rather than too small.
    least : the same with the variance lower by one standard error: what this number of frames can prove.
    """

    value: float
    least: float


def fluence_spread(rings: RingPhotons) -> FluenceSpread:
    """How much the fluences of frames differ, from their photons in rings.

    One half of the frames chooses the average of rings, and the other half gives its variance, and vice
    versa, so that no chance fluctuation is selected.
    """
    mean = np.maximum(rings.signal.mean(axis=0), 0.0)
    told = mean**2 / np.maximum(mean + rings.background, 1e-30)
    used = _brightest(told)
    n = len(rings.signal) // 2
    if n < _FEWEST_FRAMES or not used.any():
        return FluenceSpread(0.0, 0.0)
    signal, background = rings.signal[:, used], rings.background[used]
    moments = [_moments(signal[first::2], background) for first in (0, 1)]
    variance = error = 0.0
    for (own, noise), (others, others_noise) in (moments, moments[::-1]):
        weights = _steadiest(own, noise, n)
        found = float(weights @ others @ weights)
        variance += found / 2
        error += (max(found, 0.0) + float(weights**2 @ others_noise)) / np.sqrt(n) / 2
    return FluenceSpread(*(float(np.sqrt(max(v, 0.0))) for v in (variance, variance - error)))


def _brightest(told: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a ring is one of the brightest, which together hold _BRIGHT_SHARE of the information, (R,)."""
    order = np.argsort(-told, kind="stable")
    before = np.cumsum(told[order]) - told[order]
    used = np.zeros(len(told), dtype=bool)
    used[order] = before < _BRIGHT_SHARE * told.sum()
    return used


def _moments(
    photons: NDArray[np.float64], background: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relative covariance of rings less photon noise, (R, R), and relative variance of that noise, (R,)."""
    mean = np.maximum(photons.mean(axis=0), 1e-12)
    noise = (mean + background) / mean**2
    return np.atleast_2d(np.cov(photons / mean, rowvar=False)) - np.diag(noise), noise


def _steadiest(
    covariance: NDArray[np.float64], noise: NDArray[np.float64], n_frames: int
) -> NDArray[np.float64]:
    """Weights (R,), with sum 1, of the average of rings that varies least.

    The known photon noise is subtracted; it only limits how precisely so many frames determine the rest.
    """
    values, vectors = np.linalg.eigh(covariance)
    beyond_noise = (vectors * np.maximum(values, 0.0)) @ vectors.T
    weights = np.linalg.solve(
        beyond_noise + _CAUTION * np.sqrt(2 / n_frames) * np.diag(noise), np.ones(len(noise))
    )
    return np.asarray(weights / weights.sum())
