"""Which frames begin a new state."""

from typing import Any

import numpy as np
import pytest

from orienteer.reconstruction.states.splitting import choose_seeds, drop_state, split_state


def test_a_few_frames_unlike_all_others_begin_a_state_alone() -> None:
    rng = np.random.default_rng(1)
    odds = rng.normal(5.0, 1.0, 1000)
    odds[::20] = rng.normal(-10.0, 3.0, 50)
    is_seed = choose_seeds(odds, np.ones(1000, dtype=bool))
    assert is_seed.sum() >= 45
    assert is_seed[::20].sum() == is_seed.sum()


def test_where_all_frames_are_alike_nearly_half_of_them_begin_a_state() -> None:
    odds = np.random.default_rng(2).normal(0.0, 1.0, 1000)
    is_seed = choose_seeds(odds, np.ones(1000, dtype=bool))
    assert 0.4 <= is_seed.mean() <= 0.5
    assert odds[is_seed].max() < odds[~is_seed].min()


def test_frames_of_other_states_begin_nothing() -> None:
    rng = np.random.default_rng(3)
    own = rng.integers(0, 3, 900) == 1
    odds = np.where(own, rng.normal(0.0, 1.0, 900), -100.0)
    is_seed = choose_seeds(odds, own)
    assert is_seed.any()
    assert own[is_seed].all()


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_frames_begin_nothing(n: int) -> None:
    assert not choose_seeds(np.zeros(5), np.arange(5) < n).any()


@pytest.fixture
def emc(tiny: Any) -> Any:
    emc = tiny.emc(level=2, models=2, fluence="estimate")
    emc.step()
    return emc


def test_a_split_makes_two_models_that_share_the_frames(emc: Any) -> None:
    before = emc.models[0, 0]
    split_state(emc)
    assert emc.n_models == emc.work.rows.n_models == 2
    assert emc.models.shape[:2] == (2, 2)
    assert len(emc.volumes()) == 2
    assert not np.allclose(emc.models[0, 0], emc.models[0, 1])
    # Both are still the model that they come from, moved by what some frames have more than it.
    for m in (0, 1):
        assert np.corrcoef(before.ravel(), emc.models[0, m].ravel())[0, 1] > 0.5
    emc.step()
    found = emc.orientations()
    assert found["state_probability"].shape == (len(emc.fluence), 2)
    assert found["state_probability"].sum(axis=1) == pytest.approx(1.0, abs=2e-3)
    likeliest = found["state_probability"].argmax(axis=1)
    shown = found["model"] >= 0
    assert np.array_equal(likeliest[shown], found["model"][shown])


def test_no_half_is_oriented_by_its_own_noise_after_a_split(simulated: Any, tiny: Any) -> None:
    """Frames of both halves fit the models that they meet equally well: neither has a part in them."""
    data = simulated(tiny.particle, 14, 65.0, frames=160, photons_per_frame=100)
    emc = data.emc(level=3, models=2, sentinels=0.0)
    for _ in range(3):
        emc.step()

    def advantage() -> float:
        nats = emc.table.log_likelihood
        return float(nats[emc.half == 0].mean() - nats[emc.half == 1].mean())

    before = advantage()
    split_state(emc)
    assert emc.models.shape[:2] == (2, 2)
    assert not np.array_equal(emc.models[0], emc.models[1])
    emc.step()
    assert abs(advantage() - before) < 1.5


def test_the_second_half_has_the_states_of_the_first(simulated: Any, tiny: Any) -> None:
    """What the new state has more than the old one is the same in both halves, and not swapped."""
    from orienteer.particle.conformations import Ensemble
    from orienteer.particle.named_bodies import random_blobs

    states = (tiny.particle, random_blobs(200.0, 20, 11))
    mixed = Ensemble(states, np.array([0.5, 0.5]), ("a", "b"))
    emc = simulated(mixed, 14, 65.0, frames=300, photons_per_frame=1000).emc(level=3, models=2)
    for _ in range(8):
        emc.step()
    split_state(emc)
    first, second = (models[1] - models[0] for models in emc.models)
    assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.2


def test_a_state_that_is_dropped_leaves_the_others_as_they_are(emc: Any) -> None:
    split_state(emc)
    kept = emc.models[:, 1].copy()
    emc.table.model[:] = np.arange(len(emc.fluence)) % 2
    drop_state(emc, 0)
    assert emc.n_models == emc.work.rows.n_models == 1
    assert np.array_equal(emc.models[:, 0], kept)
    assert set(np.unique(emc.table.model)) == {-1, 0}
    emc.step()
