"""Each method is what its paper says, written out with projections in float64."""

from collections.abc import Callable

import numpy as np
import pytest

from orienteer.orientation.point_group import as_point_group
from orienteer.phase.constraints import project_support, project_symmetry
from orienteer.phase.data import PhasingData, phasing_data
from orienteer.phase.held_out import log_likelihood
from orienteer.phase.iterations import METHODS, dm, er, hio, raar
from orienteer.phase.projection import project_modulus
from orienteer.phase.state import PhaseState

Projection = Callable[[np.ndarray], np.ndarray]


def make(body, positive: bool = True, seed: int = 0) -> tuple[PhaseState, PhasingData]:
    data = phasing_data(body(speckles=5.0, hole=1.0).intensity, device="cpu")
    rng = np.random.default_rng(seed)
    shape = (2, data.n, data.n, data.n)
    density = (rng.normal(size=shape) * data.amplitudes.max() / data.n**3).astype(np.float32)
    state = PhaseState(density, rng.random(shape) < 0.4, np.zeros(2, np.float32), np.full(2, 100.0), positive)
    return state, data


def projections(state: PhaseState, data: PhasingData) -> tuple[Projection, Projection]:
    """Onto the data and onto the support."""

    def onto_data(x: np.ndarray) -> np.ndarray:
        return project_modulus(x.astype(np.float32), state.background, data).astype(np.float64)

    def onto_support(x: np.ndarray) -> np.ndarray:
        return np.where(state.support & ((x >= 0) | (not state.positive)), x, 0)

    return onto_data, onto_support


@pytest.mark.parametrize("positive", [True, False])
def test_error_reduction_projects_onto_one_set_after_the_other(body, positive) -> None:
    state, data = make(body, positive)
    M, S = projections(state, data)
    expected = S(M(state.density))
    assert_step(er(state, data), expected)


@pytest.mark.parametrize("positive", [True, False])
def test_hybrid_input_output_pushes_back_what_is_forbidden(body, positive) -> None:
    state, data = make(body, positive)
    M, _ = projections(state, data)
    x = state.density.astype(np.float64)
    p = M(x)
    obeys = state.support & ((p >= 0) | (not positive))
    assert_step(hio(state, data, 0.8), np.where(obeys, p, x - 0.8 * p))


@pytest.mark.parametrize("positive", [True, False])
def test_raar_relaxes_the_average_of_reflections(body, positive) -> None:
    state, data = make(body, positive)
    M, S = projections(state, data)
    x = state.density.astype(np.float64)
    reflected = 2 * M(x) - x
    both = 2 * S(reflected) - reflected
    assert_step(raar(state, data, 0.87), 0.87 / 2 * (both + x) + 0.13 * M(x))


@pytest.mark.parametrize("beta", [1.0, 0.7])
def test_the_difference_map_adds_the_difference_of_two_estimates(body, beta) -> None:
    state, data = make(body)
    M, S = projections(state, data)
    x = state.density.astype(np.float64)
    f_data = M(x) + (M(x) - x) / beta
    f_support = S(x) - (S(x) - x) / beta
    assert_step(dm(state, data, beta), x + beta * (S(f_data) - M(f_support)))


def assert_step(state: PhaseState, expected: np.ndarray) -> None:
    assert state.density.dtype == np.float32
    assert np.abs(state.density - expected).max() < 2e-5 * np.abs(expected).max()


def test_starts_do_not_know_of_each_other(body) -> None:
    for method in METHODS.values():
        state, data = make(body)
        alone = state.select(np.array([1]))
        beside = method(state, data, 0.8)
        assert method(alone, data, 0.8).density[0] == pytest.approx(beside.density[1], rel=1e-5, abs=1e-6)


def test_error_reduction_never_gets_worse(body) -> None:
    """The distance between the two sets falls with every step (Fienup 1982)."""
    state, data = make(body)
    distances = []
    for _ in range(12):
        projected = project_modulus(state.density, state.background, data)
        obeying = project_support(projected, state.support)
        distances.append(float(((projected - obeying).astype(np.float64) ** 2).sum()))
        state = er(state, data)
    assert (np.diff(distances) <= 1e-6 * distances[0]).all()
    assert distances[-1] < 0.9 * distances[0]
    assert np.isfinite(log_likelihood(state.density, state.background, data, data.measured)).all()


def test_symmetric_densities_stay_and_others_become_symmetric(body) -> None:
    n, group = 24, as_point_group("C3")
    axis = np.arange(n) - n // 2
    square = [(axis - shift) ** 2 for shift in (3, 1, 2)]
    one = np.exp(-(square[0][:, None, None] + square[1][:, None] + square[2]) / 10.0)
    once = project_symmetry(one[None].astype(np.float32), group, 10.0)
    twice = project_symmetry(once, group, 10.0)
    assert np.abs(once - one).max() > 0.3
    assert np.abs(twice - once).max() < 0.02
    assert project_symmetry(once, as_point_group("C1"), 10.0) is once
