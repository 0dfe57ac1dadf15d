"""The radial mean of each state, relative to that of all frames.

Models are stored relative to the radial mean, because near dark rings the intensity changes within a voxel,
and cannot be interpolated.  Slices are multiplied by the mean again at the pixels.  States have their dark
rings at different radii, so that each has a radial mean of its own, from the frames that show it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.exact_sums import in_parts
from orienteer.reconstruction.model.radial_profile import RadialProfile

if TYPE_CHECKING:
    from orienteer.reconstruction.carried import Carried

# Photons that every ring of a state starts with, at the ratio of the whole state to all frames, so that
# chance does not make rings with few photons bright or dark.
_PRIOR_PHOTONS = 10.0
# Limit of the ratio of a state to all frames, and of its inverse.
_LARGEST_RATIO = 1e3
# The ratio of a state that has the radial mean of all frames: 1.
NO_RATIO = RadialProfile(np.zeros(1), np.zeros(1))


def ratios_of_states(emc: "Carried", state: NDArray[np.int64], n_states: int) -> list[RadialProfile]:
    """The radial mean of each state, relative to that of all frames.

    state : (N,) the state that every frame shows; -1: none, or not known well enough.
    """
    work, radius = emc.work, emc.profile.radius_inv_A
    photons, fluence = photons_of_states(emc, state, n_states)
    background = emc.noise.background
    if background is not None:
        frames = np.bincount(state[state >= 0], minlength=n_states)
        photons = np.maximum(photons - frames[:, None] * background[work.places], 0.0)
    expected = fluence * emc.pixels.correction[work.places] * emc.profile(work.length_inv_A)
    ring = np.searchsorted((radius[1:] + radius[:-1]) / 2, work.length_inv_A)
    ratios = []
    for counted, of_all in zip(photons, expected, strict=True):
        if not of_all.sum() > 0:
            ratios.append(NO_RATIO)
            continue
        whole = counted.sum() / of_all.sum()
        in_rings = [np.bincount(ring, each, minlength=len(radius)) for each in (counted, of_all)]
        mean = (in_rings[0] + _PRIOR_PHOTONS * whole) / (in_rings[1] + _PRIOR_PHOTONS)
        mean = np.clip(mean, 1 / _LARGEST_RATIO, _LARGEST_RATIO)
        ratios.append(RadialProfile(radius, np.log(mean)))
    return ratios


def photons_of_states(
    emc: "Carried", state: NDArray[np.int64], n_states: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Photons of the frames of each state at every pixel of the stage, and summed fluences, (M, P) both.

    Counts are whole numbers, and fluences are rounded, so that sums are the same on any number of ranks.
    """
    work, xp, most = emc.work, emc.xp, 2 * float(emc.fluence.sum())
    photons, fluence = np.zeros((2, n_states, len(work.places)))
    for half in range(emc.n_halves):
        for batch in work.batches(half, emc.fluence):
            own = np.isin(batch.places, emc.frames.own_of(batch.places))
            shown = np.where(own, state[batch.places], -1)
            for group in batch.groups:
                is_shown = shown[group.columns] == np.arange(n_states)[:, None]
                seen_at = np.where(is_shown, emc.fluence[batch.places[group.columns]], 0.0)
                merged: Array = group.product.merge(xp.asarray(is_shown.astype(np.float32)), largest=1.0)
                photons += to_numpy(merged.T if batch.by_pixel else merged)
                fluence += in_parts(seen_at, most).sum(axis=1, keepdims=True)
                if group.frames.missing is not None:
                    hidden = group.product.missing_merge(xp.asarray(seen_at.astype(np.float32)))
                    fluence -= in_parts(to_numpy(hidden.T if batch.by_pixel else hidden), most)
    return emc.mesh.all.sum(photons), emc.mesh.all.sum(fluence)


def state_of_ratios(ratios: Sequence[RadialProfile]) -> dict[str, NDArray[np.float64]]:
    """Ratios by name, for a checkpoint."""
    found = {}
    for m, ratio in enumerate(ratios):
        found[f"ratios/{m}/radius_inv_A"] = ratio.radius_inv_A
        found[f"ratios/{m}/log_mean"] = ratio.log_mean
    return found


def ratios_of_state(state: Mapping[str, Any], n_states: int) -> list[RadialProfile]:
    """The ratios of a checkpoint; an older one may have none."""
    if "ratios/0/log_mean" not in state:
        return [NO_RATIO] * n_states
    return [
        RadialProfile(
            np.array(state[f"ratios/{m}/radius_inv_A"], dtype=np.float64),
            np.array(state[f"ratios/{m}/log_mean"], dtype=np.float64),
        )
        for m in range(n_states)
    ]
