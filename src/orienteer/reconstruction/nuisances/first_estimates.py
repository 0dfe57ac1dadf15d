"""First estimates, before there is a model: which frames look alike, their fluences, their radial mean.

A few very bright shots of something else may hold more photons than all others together.  So frames that are
unlike the others are left out here, and no frame counts for more than ten typical ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.likelihood.fluence import expected_fluence
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.nuisances.fluence_spread import fluence_spread
from orienteer.reconstruction.nuisances.screening import ring_photons, unlike_others
from orienteer.reconstruction.settings import EmcSettings

# Fluences are not estimated if their relative spread is below this.
LEAST_SPREAD = 0.08
# No frame counts for more than this many of median fluence.
_BRIGHTEST = 10.0
_FRAMES_AT_ONCE = 2000


@dataclass(frozen=True, eq=False)
class FirstEstimates:
    """First estimates for all frames, (N,) each.

    weight : 1 for frames that may show the particle, by their radial profile, and 0 for others.
    fluence : with mean 1 over frames of weight 1; all 1 if fluences are not estimated.
    fluence_spread : relative standard deviation of the fluence.
    estimates_fluence : whether every frame gets a fluence of its own.
    """

    weight: NDArray[np.float64]
    fluence: NDArray[np.float64]
    fluence_spread: float
    estimates_fluence: bool

    def sums(self, frames: FrameStore) -> tuple[NDArray[np.float64], ...]:
        """Weighted sums over the frames of photons, frames and fluence at every usable pixel, (U,) each."""
        weight = bounded_weights(self.weight, self.fluence)
        if (weight == 1).all():
            return frames.pixel_photons, frames.pixel_frames, frames.pixel_frames
        return _weighted_sums(frames, weight, self.fluence)


def first_estimates(
    frames: FrameStore, settings: EmcSettings, background: NDArray[np.float64] | None,
    learns: NDArray[np.bool_],
) -> FirstEstimates:  # fmt: skip
    """Estimate weights and fluences of all frames before the first iteration.

    background : (U,) photons per shot, or None.
    learns : (N,) bool, frames from which the spread and the mean fluence are learnt.
    """
    rings = ring_photons(frames, background)
    weight = np.ones(frames.n_frames)
    # With several models, a few frames that are unlike the others may be a state of their own.
    if settings.reject_junk and settings.models == 1:
        weight = np.where(unlike_others(rings), 0.0, 1.0)
    told = np.where(learns, weight, 0.0)
    spread = fluence_spread(rings.of(told > 0))
    differ = spread.least > LEAST_SPREAD
    estimates = settings.fluence == "estimate" or (settings.fluence == "auto" and differ)
    fluence = np.ones(frames.n_frames)
    if estimates:
        fluence = _first_fluence(frames.photons, float(rings.background.sum()), told, spread.value)
    return FirstEstimates(weight, fluence, spread.value, estimates)


def bounded_weights(weight: NDArray[np.float64], fluence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (N,) in the merge, limited so that no frame adds more photons than ten of median fluence.

    weight : (N,) probability that each frame shows the particle.
    """
    shown = (weight >= 0.5) & (fluence > 0)
    if not shown.any():
        return weight
    most = _BRIGHTEST * float(np.median(fluence[shown]))
    return np.asarray(weight * most / np.maximum(fluence, most))


def weights_in_temperature(weight: NDArray[np.float64], fluence: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same (N,), but 0 for frames that rather show something else.

    However little such a frame counts, it would hold down the temperature of all if it is bright.
    """
    return np.where(weight >= 0.5, bounded_weights(weight, fluence), 0.0)


def _first_fluence(
    photons: NDArray[np.float64], behind: float, told: NDArray[np.float64], spread: float
) -> NDArray[np.float64]:
    """Fluences (N,) from the photons of the frames, with mean 1 over frames for which ``told`` is not 0."""
    weights = told if told.any() else np.ones(len(told))
    typical = float(np.average(photons, weights=weights))
    # The mean signal is at least the photon noise, which is there without any particle.
    mean = max(typical - behind, np.sqrt(typical), 1e-12)
    least = np.sqrt(np.maximum(photons, 1.0)) if behind else 1e-3 * mean
    signal = np.maximum(photons - behind, least)
    fluence = expected_fluence(signal / mean, photons / signal**2, spread, weights)
    return np.asarray(fluence / np.average(fluence, weights=weights))


def _weighted_sums(
    frames: FrameStore, weight: NDArray[np.float64], fluence: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    n = len(frames.pixels)
    photons = np.zeros(n)
    lost = np.zeros((2, n))
    used = frames.own_of(np.flatnonzero(weight > 0))
    for chosen in frames.chunks(used, _FRAMES_AT_ONCE):
        batch = frames.batch(chosen, np.arange(n), n, "cpu", "sparse" if frames.is_counts else "dense")
        own = weight[chosen]
        if batch.photons is not None:
            of_frame = np.repeat(own, np.diff(to_numpy(batch.photons.start)))
            photons += np.bincount(batch.photons.pixel, of_frame * batch.photons.count, minlength=n)
        else:
            photons += own @ np.asarray(batch.dense, dtype=np.float64)
        if batch.missing is not None:
            n_missing = np.diff(to_numpy(batch.missing.start))
            for row, values in zip(lost, (own, own * fluence[chosen]), strict=True):
                row += np.bincount(batch.missing.pixel, np.repeat(values, n_missing), minlength=n)
    photons, *lost = frames.mesh.all.sum(np.stack([photons, *lost]))
    return photons, weight.sum() - lost[0], (weight * fluence).sum() - lost[1]
