"""Update all that is learnt besides poses: fluence, junk, background, noise, frequency of states and junk."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import shell_index
from orienteer.compute.arrays import to_numpy
from orienteer.likelihood.fluence import (
    bound_fluence,
    expected_fluence,
    update_fluence,
)
from orienteer.reconstruction.frames.frame_fit import (
    deviation_odds,
    fit_frames,
    log_mean,
    particle_probability,
)
from orienteer.reconstruction.nuisances.first_estimates import bounded_weights
from orienteer.reconstruction.nuisances.ring_deviation import Rings, ring_odds
from orienteer.reconstruction.nuisances.unknown_background import even_share
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.states.fluence import means_by_state, normalise_by_state, settle_fluence

if TYPE_CHECKING:
    from orienteer.reconstruction.carried import Carried

# Nats by which a frame that the first look left out must fit better than others to be taken in.
_SCREENED_NATS = 3.0
# In the first stage, frames are judged in every fourth iteration, and left out if their odds are below minus
# so many nats.
_JUDGED_EVERY, _STRANGE_NATS = 4, 10.0
# Quantiles of the odds in a state that are one standard deviation apart; and how many standard deviations
# below the median are still ordinary.
_TYPICAL_AND_GOOD, _SCATTER = (0.5, 0.84), 4.0
# A shell shows speckles if the halves correlate by at least this.
_KNOWN = 0.5


def update_nuisances(emc: "Carried", deposits: list[Deposit]) -> None:
    """Update the nuisance parameters for the next iteration, from the new models and the deposits."""
    work, table = emc.work, emc.table
    # In the first stage the model is blurred and explains no frame better than other descriptions do, so that
    # frames are fully judged from the second stage on.
    judges = emc.settings.reject_junk and emc.course.stage > 0
    looks = emc.settings.reject_junk and not judges and emc.settings.models == 1
    if looks and emc.iteration % _JUDGED_EVERY == 1:
        _leave_out_strangers(emc)
    exact = emc.estimates_fluence and (emc.noise.background is not None or emc.frames.has_missing)
    if judges or exact:
        dispersion = emc.noise.dispersion_of_pixels(work)[: work.n_scored]
        # With several models, some are known less well, and their frames deviate without being junk.
        rings = Rings(work, len(emc.fluence)) if judges and emc.n_models == 1 else None
        fit = fit_frames(
            work, emc.models, table.quaternion, table.model, emc.fluence, dispersion, fits_fluence=exact,
            rings=rings,
        )  # fmt: skip
    if judges:
        n_rows = work.n_poses * emc.n_models
        # The pose was chosen from all poses, which alone gains this many nats.
        chosen = np.log(n_rows / np.clip(table.perplexity, 1, n_rows))
        odds = fit.log_odds - chosen
        if rings is not None:
            by_ring = ring_odds(rings.sums, table.merged & ~emc.sentinel & (table.weight >= 0.5))
            # If the usual deviation of rings is not known yet, they are no alternative description.
            descriptions = [odds, fit.log_deviation_odds, *([by_ring] if np.isfinite(by_ring).any() else [])]
            odds = -log_mean([-each for each in descriptions])
        odds = np.minimum(odds, fit.log_signal_odds - chosen)
        if rings is None:
            odds = odds_in_states(odds, table.model, table.merged & ~emc.sentinel)
        odds -= _SCREENED_NATS * (1 - emc.first_weight)
        table.weight = particle_probability(odds, table.merged & ~emc.sentinel)
    if emc.estimates_fluence:
        photons = work.scored_photons(emc.frames)
        seen = table.merged & (table.expected > 0)
        # Sentinels are not merged, so that they use the prediction for a typical frame.
        typical = np.median(table.expected[seen]) if seen.any() else 0.0
        expected = np.where(seen, table.expected, typical)
        fluence = fit.fluence if exact else update_fluence(photons, expected)
        shown = (seen & (table.shown >= 0)).astype(np.float64)
        behind = emc.noise.background_photons(work)
        fluence = bound_fluence(fluence, photons, behind, weights=bounded_weights(shown, emc.fluence))
        signal = np.maximum(photons - behind, 1e-3)
        fluence = expected_fluence(fluence, photons / signal**2, emc.fluence_spread, shown)
        # Frames that were not merged have no prediction of their own: they are scaled with the mean of all.
        model = np.where(seen, table.model, -1)
        old_means = means_by_state(emc.fluence, shown, model, emc.n_models)
        emc.fluence, means = normalise_by_state(fluence, shown, model, emc.n_models)
        # If fluences were fitted to the new models, the models are multiplied by their mean.  Otherwise
        # fluences come from predictions of the models before, and only their ratios count: the new models
        # belong to the fluences with which they were merged, whose mean is 1, unless frames of a state came
        # from another one.
        if exact:
            emc.brighten(means)
        elif emc.n_models > 1:
            emc.brighten(old_means)
        if emc.n_models > 1:
            settle_fluence(emc)
    emc.noise.update(work, emc.models, table.quaternion, table.shown, emc.fluence)
    mass = to_numpy(sum(deposit.row_mass for deposit in deposits))
    work.update_prior(mass)
    if emc.junk is not None:
        emc.junk = emc.noise.solve_junk(deposits, work, emc.junk)


def odds_in_states(
    odds: NDArray[np.float64], model: NDArray[np.int64], learns: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Odds (N,) relative to a limit for each state, below which a frame is strange for that state.

    The limit is -10 nats, or lower if the odds of the state scatter below that.  The odds of dim frames
    scatter by chance, and all odds of a badly known state of few frames are below zero.  The scatter is
    measured in the better half, in which there is no junk.
    model : (N,) state of each frame, -1: none; learns : (N,) bool, frames that show what is typical.
    """
    relative = odds.copy()
    for m in np.unique(model[learns & (model >= 0)]):
        own = model == m
        typical, good = np.quantile(odds[own & learns], _TYPICAL_AND_GOOD)
        relative[own] -= min(-_STRANGE_NATS, typical - _SCATTER * (good - typical))
    return relative


def _leave_out_strangers(emc: "Carried") -> None:
    """Leave out frames that deviate even from a blurred model by far more than the others do.

    Otherwise a few bright shots of something else would outweigh all others before they can be judged.
    """
    work, table = emc.work, emc.table
    dispersion = emc.noise.dispersion_of_pixels(work)[: work.n_scored]
    odds = deviation_odds(work, emc.models, table.quaternion, table.model, emc.fluence, dispersion)
    # At least half of the frames stay: a model that fits fewer is itself wrong.
    learns = table.merged & ~emc.sentinel
    limit = min(-_STRANGE_NATS, float(np.median(odds[learns]))) if learns.any() else -np.inf
    table.weight = np.where(odds < limit, 0.0, emc.first_weight)


def take_off_background(emc: "Carried") -> None:
    """Move the part of the model that is never dark, on a shell and its neighbours, to the background."""
    xp, noise = emc.xp, emc.noise
    n, voxel = len(emc.half_correlation), emc.work.stage.voxel_inv_A
    radius = np.arange(n) * voxel
    n_known = int(np.argmax(np.append(emc.half_correlation[2:], 0.0) < _KNOWN)) + 2
    model = to_numpy(emc.models.mean(axis=(0, 1)))
    share = even_share(model, emc.profile(radius), 1 / (emc.diameter_A * voxel), n_known)
    of_pixel = np.interp(emc.pixels.length_inv_A, radius, share)
    even = of_pixel * emc.profile(emc.pixels.length_inv_A) * emc.pixels.correction
    noise.background = even if noise.background is None else noise.background + even
    emc.profile = emc.profile.scaled(1 - np.interp(emc.profile.radius_inv_A, radius, share))
    cube = share[np.clip(shell_index(len(model)), 0, n - 1)]
    rest = xp.asarray(cube.astype(np.float32))
    emc.models, emc.full = (xp.maximum(x - rest, xp.float32(0)) / (1 - rest) for x in (emc.models, emc.full))
