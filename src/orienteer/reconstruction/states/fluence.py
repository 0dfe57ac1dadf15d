"""Fluences of frames of several states.

At first, a state that scatters less cannot be distinguished from dimmer shots, and a mixture of states looks
as if fluences differed.  The mean fluence over the frames of each state is set to 1, and each state becomes
as bright as its frames are.  If the photon numbers within each state then scatter by no more than counting
noise, the states differed, and not the shots: all fluences become 1, and brightness helps to find the state
of a frame.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.likelihood.fluence import normalise_fluence
from orienteer.reconstruction.nuisances.first_estimates import LEAST_SPREAD

if TYPE_CHECKING:
    from orienteer.reconstruction.carried import Carried

# Fewest frames of a state whose mean is used.
_FEWEST = 10
# Two relative standard errors of a variance that is computed from a median, times the root of the number.
_MEDIAN_ERRORS = 4.6
# Least distance of separate peaks of photon numbers, in standard deviations; rounds to find the peaks.
_APART, _ROUNDS = 4.0, 30


def normalise_by_state(
    fluence: NDArray[np.float64], weights: NDArray[np.float64], model: NDArray[np.int64], n_models: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fluences (N,) normalised to a mean of 1 in each state, and the means (M,) that they had before.

    weights : (N,) how much each frame counts in the mean; model : (N,) state of each, -1: none.
    States with hardly any frames use the mean of all.
    """
    whole, mean = normalise_fluence(fluence, weights)
    means = np.full(n_models, mean)
    for m in range(n_models):
        own = np.where(model == m, weights, 0.0)
        if own.sum() >= _FEWEST:
            means[m] = normalise_fluence(fluence, own)[1]
    return np.where(model >= 0, fluence / means[np.maximum(model, 0)], whole), means


def means_by_state(
    fluence: NDArray[np.float64], weights: NDArray[np.float64], model: NDArray[np.int64], n_models: int
) -> NDArray[np.float64]:
    """Mean fluence of the frames of each state, (M,); arguments as in :func:`normalise_by_state`."""
    return normalise_by_state(fluence, weights, model, n_models)[1]


def spread_within_states(
    photons: NDArray[np.float64], expected: NDArray[np.float64], model: NDArray[np.int64]
) -> float:
    """Relative standard deviation of fluences about the mean of their state, beyond photon noise.

    photons : (N,) counted; expected : (N,) at unit fluence by the pose of each frame; model : (N,) its state.
    The scatter is a median, so that a few frames in the wrong state do not matter.  If one state scatters
    significantly more than all together, its own scatter counts: it may still be two states.
    """
    spreads, deviations = [], []
    for m in np.unique(model):
        own = model == m
        ratio = photons[own] / expected[own]
        middle = np.median(ratio)
        deviations.append((ratio / max(middle, 1e-12) - 1) * np.sqrt(expected[own] * middle))
        sure = 1 / (1 + _MEDIAN_ERRORS / np.sqrt(own.sum()))
        spreads.append(_spread(deviations[-1], np.median(photons[own]), sure))
    return max(_spread(np.concatenate(deviations), np.median(photons)), *spreads)


def _spread(deviations: NDArray[np.float64], photons: float, sure: float = 1.0) -> float:
    """Relative standard deviation beyond counting noise, from deviations (N,) in units of that noise."""
    scatter = sure * (1.4826 * np.median(np.abs(deviations))) ** 2
    return float(np.sqrt(max(scatter - 1, 0.0) / max(photons, 1.0)))


def are_peaks_of_states(photons: NDArray[np.float64], means: NDArray[np.float64]) -> bool:
    """Whether photon numbers (N,) lie in separate peaks, one for each state, no wider than counting noise.

    means : (M,) approximate photons of the states, from which the search for the peaks begins.
    Fluences that differ give one wide peak.  A mixture of narrow peaks may fit that well, but they overlap.
    """
    peaks = np.sort(np.maximum(means, 1e-3))
    for _ in range(_ROUNDS):
        log_odds = photons[:, None] * np.log(peaks) - peaks
        share = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        weight = np.maximum(share.sum(axis=0), 1e-12)
        peaks = np.maximum(share.T @ photons / weight, 1e-3)
    if (weight < _FEWEST).any() or (np.diff(np.sqrt(np.sort(peaks))) * 2 < _APART).any():
        return False
    scatter = (share * (photons[:, None] - peaks) ** 2).sum(axis=0) / weight
    return bool(((scatter / peaks - 1) / peaks <= LEAST_SPREAD**2).all())


def fluence_in_state(emc: "Carried", state: int) -> NDArray[np.float64]:
    """Fluences (N,) that all frames would have if they showed this state, scaled by its merged frames.

    If fluences were not estimated at the start, they do not change.  If they were, each frame has its own
    even if all were set to 1 since, so that likelihoods with few and with many states can be compared.
    """
    table = emc.table
    told = table.merged & ~emc.sentinel & (table.shown == state) & (table.expected > 0)
    if not emc.began_with_fluences or told.sum() < _FEWEST:
        return emc.fluence
    behind = emc.noise.background_photons(emc.work)
    signal = np.maximum(emc.work.scored_photons(emc.frames) - behind, 1e-3)
    return np.asarray(signal / np.median(signal[told] / emc.fluence[told]))


def settle_fluence(emc: "Carried") -> None:
    """Set all fluences to 1 from now on, if the states explain why frames differ in brightness."""
    if not emc.estimates_fluence or emc.settings.fluence != "auto" or emc.noise.background is not None:
        return
    table = emc.table
    told = table.merged & ~emc.sentinel & (table.shown >= 0) & (table.expected > 0)
    if not told.any():  # all frames are junk
        return
    photons = emc.work.scored_photons(emc.frames)
    shown = table.shown[told]
    is_narrow = spread_within_states(photons[told], table.expected[told], shown) <= LEAST_SPREAD
    means = np.array([photons[told][shown == m].mean() for m in np.unique(shown)])
    if is_narrow or (len(means) == emc.n_models and are_peaks_of_states(photons[told], means)):
        emc.estimates_fluence = False
        emc.fluence = np.ones(len(emc.fluence))
