"""Whether one float16 term is enough: the error that is announced is the one that is made."""

import numpy as np
import pytest

from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.rounding import error_of_half


def scores_in(likelihood, operand, offsets, problem, frames):
    product = problem.product(np.asarray(operand, np.float64))
    return likelihood.scores(product, offsets, frames, fluence=np.ones(len(frames))).astype(np.float64)


@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
@pytest.mark.parametrize("photons", [300.0, 30_000.0])
def test_the_announced_error_is_near_the_largest_of_all_pairs(make_problem, kind, photons) -> None:
    problem = make_problem(photons=photons, T=40, D=120)
    frames = problem.frames()
    sigma = float(problem.pixels.reference.mean())
    likelihood = Poisson(problem.pixels) if kind == "poisson" else Gaussian(problem.pixels, sigma)
    found = error_of_half(likelihood, problem.slices, frames, np.ones(120), 1.0)
    exact, offsets = likelihood.expand(problem.slices)
    rounded = exact.astype(np.float16).astype(np.float32)
    errors = np.abs(
        scores_in(likelihood, rounded, offsets, problem, frames)
        - scores_in(likelihood, exact, offsets, problem, frames)
    )
    # A few frames are tried, and half of what is allowed is the limit.
    assert errors.max() <= 2 * found
    assert found <= 5 * errors.max()


def test_the_error_is_that_of_tempered_scores(make_problem) -> None:
    problem = make_problem(photons=5000.0, T=30, D=50)
    likelihood, frames = Poisson(problem.pixels), problem.frames()
    arguments = (likelihood, problem.slices, frames, np.ones(50))
    whole = error_of_half(*arguments, 1.0)
    assert error_of_half(*arguments, 0.01) == pytest.approx(0.01 * whole)
    assert error_of_half(*arguments, np.full(50, 0.01, np.float32)) == pytest.approx(0.01 * whole)


def test_bright_frames_need_two_terms_when_they_are_cold_and_one_while_they_are_hot(make_problem) -> None:
    problem = make_problem(photons=100_000.0, T=30, D=50)
    arguments = (Poisson(problem.pixels), problem.slices, problem.frames(), np.ones(50))
    assert error_of_half(*arguments, 1.0) > 0.1
    assert error_of_half(*arguments, 1e-4) < 0.05
