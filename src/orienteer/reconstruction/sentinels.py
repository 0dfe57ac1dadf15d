"""Frames that are never merged watch whether orientations are learnt or made up."""

from typing import TYPE_CHECKING

import numpy as np

from orienteer.likelihood.base import Likelihood
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.posterior.scores import ScoreStore
from orienteer.posterior.tempering import inverse_temperatures
from orienteer.reconstruction.course import Course, Turn
from orienteer.reconstruction.expectation import Expander, expect
from orienteer.reconstruction.mean_pose import mean_poses

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Patterns less deep than this, in speckles, look the same after half a turn about the beam.
_FLAT_SPECKLES = 0.5
# Sentinels only watch: looking at them in every iteration would cost as much as many frames.
_EVERY = 5


def is_watched(course: Course, turn: Turn) -> bool:
    """Whether the sentinels are looked at after an iteration: now and then, and when a stage is over.

    A limit of iterations changes nothing: whoever raises it finds the run as if it had not been there.
    """
    return (course.after_limit or turn) != "go on" or course.iteration % _EVERY == 1


def sentinel_agreement_deg(emc: "Emc", likelihood: Likelihood, beta: float) -> float | None:
    """Median angle between the poses that the halves give to the sentinels, which neither has seen.

    beta : inverse temperature of a frame of mean fluence.
    None without halves or sentinels.  Writes their poses into the table of frames.
    """
    if emc.n_halves < 2 or not emc.sentinel.any():
        return None
    work = emc.work
    reach_deg = 2 * covering_bound_deg(work.stage.first_level)
    poses = []
    for models in emc.models:
        expander = Expander(models, work.points, work.junk(emc.junk))
        found = []
        for batch in work.batches("sentinel", emc.fluence):
            store = ScoreStore(len(work.rows), len(batch), emc.device, emc.settings.kept_mass)
            own_beta = inverse_temperatures(beta, batch.fluence)
            posterior = expect(likelihood, expander, work.rows, batch, own_beta, store)
            emc.table.note(work, likelihood, batch, posterior)
            best = emc.table.quaternion[batch.places]
            found.append(mean_poses(store.kept(), work.quaternions, best, emc.group, reach_deg))
        poses.append(np.concatenate(found))
    # The two ends of a pattern turned by 180 degrees differ by q_z, twice lambda q^2 / 2.
    depth_inv_A = emc.pixels.wavelength_A * work.stage.scored_inv_A**2
    is_flat = depth_inv_A * emc.diameter_A < _FLAT_SPECKLES
    apart = angular_distance_deg(poses[0], poses[1], emc.group, flat_ewald=is_flat)
    return float(np.median(apart))
