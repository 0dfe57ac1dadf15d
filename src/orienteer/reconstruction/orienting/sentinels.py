"""Sentinels, frames that are never merged, show whether the models explain new frames or only noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.ranks.comm import complete_rows
from orienteer.likelihood.base import Likelihood
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.posterior.joining import join_lists
from orienteer.posterior.scores import ScoreStore
from orienteer.posterior.tempering import inverse_temperatures
from orienteer.reconstruction.course.course import Course, Turn
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.expectation import expect, score_tile
from orienteer.reconstruction.orienting.mean_pose import likeliest, mean_poses
from orienteer.reconstruction.states.posterior import StatePosterior

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Patterns whose Ewald sphere is curved by less than this, in speckles, look the same after half a turn about
# the beam.
_FLAT_SPECKLES = 0.5
# Sentinels are oriented in every fifth iteration only: both halves orient all of them, which takes time.
_EVERY = 5
# Fewest sentinels whose gain says anything; most nats that one of them can lose; standard errors by which the
# mean gain must be above or below 0 to count.
_FEWEST, _LARGEST_LOSS, _ERRORS = 10, 3.0, 2.0


def is_watched(course: Course, turn: Turn) -> bool:
    """Whether the sentinels are oriented after an iteration: every fifth time, and when a stage is over."""
    return turn != "go on" or course.iteration % _EVERY == 1


@dataclass(frozen=True)
class SentinelWatch:
    """How the models explain the sentinels, which no model has seen.

    agreement_deg : median angle between the poses that the two halves give to a sentinel; NaN without halves.
    gain_nats : how much likelier, at the temperature of the step, the models make a sentinel than their
        radial mean does; the mean over all.  It is below 0 for frames without any orientation, even if the
        halves agree: halves that orient each other's frames may share noise.  The loss of a single sentinel
        is limited, because a shot of something else loses far more than noise can.
    error_nats : standard error of the gain.
    n_sentinels : their number.
    """

    agreement_deg: float
    gain_nats: float
    error_nats: float
    n_sentinels: int

    @property
    def is_by_halves(self) -> bool:
        """Whether two halves oriented them; without halves no filter removes the noise of the model."""
        return bool(np.isfinite(self.agreement_deg))

    @property
    def is_no_better(self) -> bool:
        """Whether the models explain the sentinels no better than a round object would."""
        return self._can_tell and self.gain_nats <= _ERRORS * self.error_nats

    @property
    def is_worse(self) -> bool:
        """Whether the models explain the sentinels significantly worse than a round object would."""
        return self._can_tell and self.gain_nats < -_ERRORS * self.error_nats

    @property
    def _can_tell(self) -> bool:
        return self.is_by_halves and self.n_sentinels >= _FEWEST


def watch_of(state: Mapping[str, Any]) -> SentinelWatch | None:
    """The last result of the sentinels, from a state of the run."""
    if state["watch"] is None:
        return None
    agreement_deg, gain_nats, error_nats, n_sentinels = map(float, state["watch"])
    return SentinelWatch(agreement_deg, gain_nats, error_nats, int(n_sentinels))


def watch_sentinels(emc: "Emc", likelihood: Likelihood, beta: float) -> SentinelWatch | None:
    """Orient the sentinels by the models of each half, or by those of all frames without halves.

    beta : inverse temperature of a frame of mean fluence.
    Returns None without sentinels.  Writes their poses into the table of frames.
    """
    if not emc.sentinel.any():
        return None
    work = emc.work
    reach_deg = 2 * covering_bound_deg(work.stage.first_level)
    comm, round_slice = work.mesh.poses, emc.round_slice()
    shape = (emc.n_halves, len(emc.sentinel))
    poses, gains = np.zeros((*shape, 4)), np.zeros(shape)
    seen = [np.zeros(0, dtype=np.int64)]
    for models, own_poses, own_gains in zip(emc.models, poses, gains, strict=True):
        expander = work.expander(models, emc.junk)
        for batch in work.batches("sentinel", emc.fluence):
            store = ScoreStore(len(work.rows), len(batch), emc.device, emc.settings.kept_mass, comm)
            own_beta = inverse_temperatures(beta, batch.fluence)
            posterior = expect(likelihood, expander, work.rows, batch, own_beta, store)
            states = None
            if emc.n_models > 1:
                states = StatePosterior(emc.n_models, len(batch), emc.xp)
                states.add_all(store, work.rows)
                states.join(comm)
            emc.table.note(work, likelihood, batch, posterior, own_beta, states)
            # The likeliest poses of all ranks are among the likeliest of each rank: the others are not sent.
            best, kept = emc.table.quaternion[batch.places], join_lists(comm, likeliest(store.kept()))
            own_poses[batch.places] = mean_poses(kept, work.quaternions, best, emc.group, reach_deg)
            own_gains[batch.places] = to_numpy(
                posterior.log_evidence - own_beta * _round_scores(likelihood, batch, round_slice)
            )
            seen.append(batch.places)
    own = emc.frames.own_of(np.unique(np.concatenate(seen)))
    complete_rows(work.mesh.all, own, *poses, *gains)
    emc.table.complete(work.mesh.all, own)
    poses, gains = poses[:, emc.sentinel], gains[:, emc.sentinel]
    apart = np.array([np.nan])
    if emc.n_halves == 2:
        apart = angular_distance_deg(poses[0], poses[1], emc.group, flat_ewald=is_flat(emc))
    gain = np.maximum(gains.mean(axis=0), -_LARGEST_LOSS)
    error = float(gain.std() / np.sqrt(max(len(gain) - 1, 1)))
    return SentinelWatch(float(np.median(apart)), float(gain.mean()), error, len(gain))


def is_flat(emc: "Emc") -> bool:
    """Whether the patterns of a reconstruction look the same after half a turn about the beam."""
    # A pixel and its image after half a turn are not Friedel mates: they are 2 q_z = lambda q^2 off.
    depth_inv_A = emc.pixels.wavelength_A * emc.work.stage.scored_inv_A**2
    return bool(depth_inv_A * emc.diameter_A < _FLAT_SPECKLES)


def _round_scores(likelihood: Likelihood, batch: Batch, round_slice: Array) -> Array:
    """Log-likelihoods (D,) of a round model: all its slices are ``round_slice``."""
    slices = round_slice[:, None] if batch.by_pixel else round_slice[None]
    return score_tile(likelihood, slices, batch)[0].astype(np.float64)
