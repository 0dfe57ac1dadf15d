"""Which state becomes two."""

from typing import Any

import numpy as np
import pytest

from orienteer.particle.conformations import Ensemble
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.states.trial import try_split

N_FRAMES = 300


@pytest.fixture(scope="module")
def mixed(simulated: Any) -> Any:
    """Frames of two particles at their true poses beside a round model, and which shows which."""
    states = (random_blobs(200.0, 20, 5), random_blobs(200.0, 20, 11))
    ensemble = Ensemble(states, np.array([0.6, 0.4]), ("a", "b"))
    data = simulated(ensemble, 14, 65.0, frames=N_FRAMES, photons_per_frame=1000)
    emc = data.emc(level=3, models=2)
    emc.step()
    emc.models[:] = 1.0
    emc.table.quaternion = np.array(data.patterns.columns["truth_orientation"], dtype=np.float64)
    return emc, np.asarray(data.patterns.columns["truth_class"])


def purity(truth: np.ndarray, is_new: np.ndarray) -> float:
    """Share of frames that are with their like."""
    right = (truth == is_new).mean()
    return float(max(right, 1 - right))


def test_a_seed_of_one_state_gathers_the_rest_of_it(mixed: Any) -> None:
    emc, truth = mixed
    own = ~emc.sentinel
    rng = np.random.default_rng(1)
    # Two thirds of the seeds are of the second state, of which there are four in ten.
    is_seed = own & (rng.uniform(size=N_FRAMES) < np.where(truth == 1, 0.5, 0.17))
    trial = try_split(emc, emc.noise.likelihood(emc.work), 0, own, is_seed)
    assert trial.gain > 0
    assert purity(truth[own], trial.is_new[own]) > purity(truth[own], is_seed[own])


def test_two_states_gain_more_than_one(mixed: Any) -> None:
    emc, truth = mixed
    likelihood = emc.noise.likelihood(emc.work)
    is_seed = np.random.default_rng(2).uniform(size=N_FRAMES) < 0.4
    whole = ~emc.sentinel
    alone = whole & (truth == 0)
    gains = [
        try_split(emc, likelihood, 0, own, own & (truth == 1 if own is whole else is_seed)).gain
        for own in (whole, alone)
    ]
    assert gains[0] / whole.sum() > gains[1] / alone.sum()


def test_nothing_is_gained_where_a_part_is_empty(mixed: Any) -> None:
    emc, _ = mixed
    none = np.zeros(N_FRAMES, dtype=bool)
    trial = try_split(emc, emc.noise.likelihood(emc.work), 0, ~emc.sentinel, none)
    assert trial.gain == 0
    assert not trial.is_new.any()


def test_where_nothing_is_gained_the_worst_frames_may_still_begin_a_state(mixed: Any) -> None:
    emc, truth = mixed
    own = ~emc.sentinel & (truth == 0)
    is_seed = own & (np.arange(N_FRAMES) % 3 == 0)
    trial = try_split(emc, emc.noise.likelihood(emc.work), 0, own, is_seed)
    assert trial.gain >= 0
    assert 0 < trial.is_new.sum() < own.sum()
