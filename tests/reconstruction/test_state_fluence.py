"""Brightness of states and of shots."""

import numpy as np
import pytest

from orienteer.reconstruction.state_fluence import means_by_state, normalise_by_state, spread_within_states


@pytest.fixture
def model() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, 4000)


def test_states_that_scatter_differently_are_no_spread_of_fluences(model: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    photons = rng.poisson(np.where(model == 0, 50.0, 80.0)).astype(float)
    expected = np.full(4000, 1.0)
    assert spread_within_states(photons, expected, model) < 0.05
    assert spread_within_states(photons, expected, np.zeros_like(model)) > 0.15
    # A few frames in the wrong state do not matter.
    wrong = np.where(rng.uniform(size=4000) < 0.03, 1 - model, model)
    assert spread_within_states(photons, expected, wrong) < 0.06


@pytest.mark.parametrize("spread", [0.15, 0.4])
def test_fluences_that_differ_are_measured_within_states(model: np.ndarray, spread: float) -> None:
    rng = np.random.default_rng(3)
    fluence = np.exp(rng.normal(0, spread, 4000))
    photons = rng.poisson(fluence * np.where(model == 0, 200.0, 300.0)).astype(float)
    found = spread_within_states(photons, np.full(4000, 250.0), model)
    assert found == pytest.approx(spread, rel=0.15)


def test_fluences_have_mean_one_in_each_state() -> None:
    fluence = np.repeat([0.5, 2.0, 9.0], 20)
    model = np.repeat([0, 1, -1], 20)
    weights = (model >= 0).astype(float)
    found, means = normalise_by_state(fluence, weights, model, 2)
    assert means.tolist() == [0.5, 2.0]
    assert found.tolist() == [1.0] * 40 + [9.0 / 1.25] * 20
    assert means_by_state(found, weights, model, 2).tolist() == [1.0, 1.0]


def test_states_of_few_frames_have_the_mean_of_all() -> None:
    found, means = normalise_by_state(
        np.r_[np.full(30, 2.0), 5.0], np.ones(31), np.r_[np.zeros(30, int), 1], 2
    )
    assert means[1] == pytest.approx((60 + 5) / 31)
    assert found[-1] == pytest.approx(5 / means[1])
