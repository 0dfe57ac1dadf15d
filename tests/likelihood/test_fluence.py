"""Fluence: the most likely one, its normalisation, its bounds, and groups of similar frames."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from orienteer.errors import OrienteerError
from orienteer.likelihood.fluence import (
    bound_fluence,
    expected_fluence,
    expected_photons,
    fluence_groups,
    normalise_fluence,
    solve_dense,
    solve_fluence,
    update_fluence,
)
from orienteer.likelihood.poisson import Poisson


def test_the_update_finds_the_simulated_fluence(make_problem) -> None:
    problem = make_problem(photons=20000.0, D=60, fluence_spread=0.6)
    likelihood = Poisson(problem.pixels)
    responsibilities = (problem.rows == np.arange(33)[:, None]).astype(np.float32)
    _, offsets = likelihood.expand(problem.slices)
    expected = expected_photons(responsibilities, offsets)
    fluence = update_fluence(problem.frames().scored_photons, expected)
    assert fluence[0] == 0.0  # a dark frame
    relative = fluence[1:] / problem.fluence[1:] - 1
    assert np.abs(relative).max() < 0.05
    assert abs(relative.mean()) < 0.005


def test_expected_photons_do_not_depend_on_threads_or_tiles() -> None:
    import numba

    rng = np.random.default_rng(1)
    p, u = rng.random((50, 1300)).astype(np.float32), rng.random(50)
    whole = expected_photons(p, u)
    np.testing.assert_allclose(whole, p.T.astype(float) @ u, rtol=1e-12)
    np.testing.assert_allclose(whole, expected_photons(p[:20], u[:20]) + expected_photons(p[20:], u[20:]))
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(whole, expected_photons(p, u))
    finally:
        numba.set_num_threads(before)


@given(seed=st.integers(0, 10_000), level=st.floats(1e-6, 30.0), bare=st.booleans())
@settings(max_examples=60, deadline=None)
def test_over_a_background_the_root_is_found(seed: int, level: float, bare: bool) -> None:
    rng = np.random.default_rng(seed)
    signal = rng.gamma(1.0, 1.0, (6, 40)) * (rng.random((6, 40)) < 0.9)
    background = level * rng.random(40) * ((rng.random(40) < 0.5) if bare else 1.0)
    truth = 10 ** rng.uniform(-2, 2, 6)
    counts = rng.poisson(truth[:, None] * signal + background)
    found = solve_fluence(counts, signal.astype(np.float32), background)
    dense = solve_dense(counts, signal.astype(np.float32), background, 1e-8)
    np.testing.assert_allclose(dense, found, rtol=1e-7, atol=1e-12)
    signal = signal.astype(np.float32).astype(float)
    for d in range(6):

        def slope(phi, d=d):
            lit = (signal[d] > 0) & (counts[d] > 0)
            lam = phi * signal[d] + background
            return (signal[d] * counts[d] / np.where(lit, lam, 1.0))[lit].sum() - signal[d].sum()

        if slope(1e-12) <= 0:
            assert found[d] < 1e-9
        else:
            assert found[d] == pytest.approx(brentq(slope, 1e-12, 1e6, xtol=1e-14, rtol=1e-12), rel=1e-6)


def test_background_is_not_taken_for_signal() -> None:
    rng = np.random.default_rng(0)
    signal = rng.gamma(1.0, 0.2, (400, 500))
    truth = np.exp(rng.normal(0, 0.5, 400))
    counts = rng.poisson(truth[:, None] * signal + 0.5)
    found = solve_fluence(counts, signal, np.full(500, 0.5))
    assert np.corrcoef(found, truth)[0, 1] > 0.95
    assert np.mean(found) == pytest.approx(np.mean(truth), rel=0.02)


def test_frames_and_signal_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OrienteerError, match="do not fit"):
        solve_fluence(np.zeros((2, 3)), np.zeros((2, 4)), np.zeros(3))


def test_normalising_keeps_fluence_times_model() -> None:
    phi, mean = normalise_fluence(np.array([1.0, 3.0, 100.0]), np.array([1.0, 1.0, 0.0]))
    assert mean == 2.0
    assert phi.tolist() == [0.5, 1.5, 50.0]
    assert normalise_fluence(np.zeros(3))[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.2])
def test_fluences_are_drawn_to_their_mean_as_far_as_noise_parts_them(spread: float) -> None:
    rng = np.random.default_rng(7)
    true = np.exp(spread * rng.normal(size=4000))
    photons = rng.choice([30.0, 300.0, 3000.0], 4000)
    found = true * np.exp(rng.normal(size=4000) * np.sqrt(1 / photons + 0.03**2))
    drawn = expected_fluence(found, 1 / photons, spread, np.ones(4000))
    error, before = (np.abs(np.log(x / true)).mean() for x in (drawn, found))
    assert error < before
    if spread == 0:
        assert error < 0.01
    if spread == 0.2:
        bright = photons == 3000
        assert np.abs(np.log(drawn[bright] / found[bright])).mean() < 0.015


def test_what_is_not_one_of_the_others_stays_where_it_is() -> None:
    fluence = np.concatenate([np.full(90, 1.0), np.full(10, 1e-3), [7.0]])
    noise, shown = np.full(101, 0.01), np.ones(101)
    np.testing.assert_array_equal(expected_fluence(fluence, noise, 0.01, shown), fluence)
    wide = np.exp(np.random.default_rng(8).normal(size=100))
    np.testing.assert_array_equal(expected_fluence(wide, noise[:100], 1.0, shown[:100]), wide)
    np.testing.assert_array_equal(expected_fluence(wide, noise[:100], 0.1, 0 * shown[:100]), wide)


def test_bounds_are_those_of_the_frames_that_count() -> None:
    photons = np.array([100.0, 100.0, 10_000.0])
    bounded = bound_fluence(np.array([1.0, 1.0, 1.0]), photons, weights=np.array([1.0, 1.0, 0.0]))
    assert bounded.tolist() == [1.0, 1.0, 25.0]


def test_runaways_are_held_and_honest_frames_left_alone() -> None:
    photons = np.array([100.0, 100.0, 100.0, 400.0, 0.0, 100.0])
    fluence = np.array([0.8, 50.0, 0.0, 3.0, 0.0, np.inf])
    bounded = bound_fluence(fluence, photons)
    by_count = photons / photons.mean()
    assert bounded[0] == 0.8
    assert bounded[3] == 3.0
    assert bounded[1] == pytest.approx(4 * by_count[1])
    assert bounded[2] == pytest.approx(by_count[2] / 4)
    assert 0 < bounded[4] < 0.1
    assert bounded[5] == pytest.approx(by_count[5])


@given(st.lists(st.floats(0, 1e3), max_size=80), st.floats(1.01, 3.0))
@settings(max_examples=60, deadline=None)
def test_groups_hold_every_frame_once_and_stay_narrow(values: list[float], ratio: float) -> None:
    phi = np.array(values)
    order, bounds, fluence = fluence_groups(phi, ratio)
    assert sorted(order.tolist()) == list(range(len(phi)))
    assert bounds[0] == 0
    assert bounds[-1] == len(phi)
    assert len(fluence) == len(bounds) - 1
    assert (np.diff(bounds) > 0).all()
    for g, mean in enumerate(fluence):
        members = phi[order[bounds[g] : bounds[g + 1]]]
        members = members[members > 0]
        if len(members):
            assert members.max() <= members.min() * ratio * (1 + 1e-9)
            assert mean == pytest.approx(np.exp(np.log(members).mean()))
        assert mean > 0


def test_wrong_groups_are_refused() -> None:
    with pytest.raises(OrienteerError, match="above 1"):
        fluence_groups(np.ones(3), 1.0)
    with pytest.raises(OrienteerError, match="finite"):
        fluence_groups(np.array([1.0, np.nan]))


@pytest.mark.gpu
def test_the_gpu_gives_the_same() -> None:
    import cupy

    rng = np.random.default_rng(2)
    p, u = rng.random((50, 1300)).astype(np.float32), rng.random(50)
    there = [cupy.asarray(array) for array in (p, u)]
    np.testing.assert_allclose(expected_photons(*there).get(), expected_photons(p, u), rtol=1e-5)
    signal, background = rng.gamma(1.0, 1.0, (30, 90)), rng.random(90)
    counts = rng.poisson(2 * signal + background)
    near = solve_fluence(counts, signal, background)
    far = solve_fluence(*(cupy.asarray(array) for array in (counts, signal, background)))
    np.testing.assert_allclose(far.get(), near, rtol=1e-7)
    photons = counts.sum(1).astype(float)
    np.testing.assert_allclose(
        bound_fluence(far, cupy.asarray(photons)).get(), bound_fluence(near, photons), rtol=1e-7
    )
    noise, shown = 1 / np.maximum(photons, 1), np.ones(30)
    drawn = expected_fluence(far, cupy.asarray(noise), 0.1, cupy.asarray(shown))
    np.testing.assert_allclose(drawn.get(), expected_fluence(near, noise, 0.1, shown), rtol=1e-7)
    np.testing.assert_array_equal(fluence_groups(far).order, fluence_groups(near).order)
