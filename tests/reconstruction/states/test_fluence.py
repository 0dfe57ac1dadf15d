"""Brightness of states and of shots."""

from types import SimpleNamespace

import numpy as np
import pytest

from orienteer.reconstruction.states.fluence import (
    are_peaks_of_states,
    means_by_state,
    normalise_by_state,
    settle_fluence,
    spread_within_states,
)


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


def test_two_states_that_are_still_one_are_no_narrow_peak_among_others() -> None:
    """Most frames of the state lie within its larger peak, and most frames of all in peaks of their own."""
    rng = np.random.default_rng(5)
    truth = np.repeat([0, 1, 2], [200, 215, 185])
    photons = rng.poisson(np.array([400.0, 900.0, 1700.0])[truth]).astype(float)
    told = np.minimum(truth, 1)
    assert spread_within_states(photons, np.full(600, 1000.0), told) > 0.1
    assert spread_within_states(photons, np.full(600, 1000.0), truth) < 0.05


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


def test_states_of_unequal_brightness_are_peaks_even_before_frames_are_in_the_right_one(
    model: np.ndarray,
) -> None:
    photons = np.random.default_rng(4).poisson(np.where(model == 0, 20.0, 80.0)).astype(float)
    assert are_peaks_of_states(photons, np.array([33.0, 70.0]))
    # Nearer together they may be one wide peak.
    near = np.random.default_rng(5).poisson(np.where(model == 0, 45.0, 60.0)).astype(float)
    assert not are_peaks_of_states(near, np.array([45.0, 60.0]))


@pytest.mark.parametrize("mean", [50.0, 1000.0])
@pytest.mark.parametrize("spread", [0.2, 0.5, 1.0])
def test_fluences_that_differ_are_no_peaks(mean: float, spread: float) -> None:
    rng = np.random.default_rng(6)
    photons = rng.poisson(mean * np.exp(rng.normal(0, spread, 4000))).astype(float)
    assert not are_peaks_of_states(photons, np.quantile(photons, [0.25, 0.75]))
    assert not are_peaks_of_states(photons, np.quantile(photons, [0.1, 0.5, 0.9]))


def test_where_all_frames_are_junk_their_fluences_stay() -> None:
    nobody = np.full(5, -1)
    table = SimpleNamespace(merged=np.ones(5, bool), shown=nobody, expected=np.ones(5))
    emc = SimpleNamespace(table=table, sentinel=np.zeros(5, bool), fluence=np.linspace(0.5, 1.5, 5))
    emc.estimates_fluence, emc.noise = True, SimpleNamespace(background=None)
    emc.settings = SimpleNamespace(fluence="auto")
    settle_fluence(emc)
    assert emc.estimates_fluence
    np.testing.assert_array_equal(emc.fluence, np.linspace(0.5, 1.5, 5))
