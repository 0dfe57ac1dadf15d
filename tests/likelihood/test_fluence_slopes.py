"""Frames of a group have fluences of their own: a step of first order brings most of the difference back."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.poisson import Poisson


def likelihood_of(kind, problem):
    if kind == "poisson":
        return Poisson(problem.pixels)
    epsilon2 = float(kind.split()[1])
    return NegativeBinomial(problem.pixels, np.full(problem.pixels.n_pixels, epsilon2, np.float32))


def differences(likelihood, problem, frames, step, corrected, by_pixel=False):
    """Scores of frames of fluence e^step that are treated in a group of fluence 1, less the true row's."""
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices

    def at(group, **more):
        operand, offsets = likelihood.expand(slices, group, by_pixel)
        product = problem.product(operand, by_pixel)
        return likelihood.scores(product, offsets, frames, fluence=group, **more).astype(float)

    if corrected is None:
        scores = at(float(np.exp(step)))
    elif corrected:
        slopes = likelihood.fluence_slopes(slices, 1.0, by_pixel)
        scores = at(1.0, slopes=slopes, frame_fluence=np.full(len(frames), np.exp(step)))
    else:
        scores = at(1.0)
    return (scores - scores[problem.rows, np.arange(len(frames))])[:, 1:]


@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("step", [-0.07, 0.07])
@pytest.mark.parametrize(
    ("kind", "background", "gain"),
    [
        ("negative_binomial 0.0", 0.0, 100.0),  # exact in the limit of Poisson
        ("negative_binomial 0.02", 0.0, 1.8),
        ("negative_binomial 0.3", 0.0, 1.3),
        ("negative_binomial 0.02", 1.0, 1.8),
        ("poisson", 0.01, 20.0),
        ("poisson", 1.0, 10.0),
    ],
)
def test_the_step_recovers_most_of_what_grouping_loses(
    make_problem, kind, background, gain, step, by_pixel
) -> None:
    problem = make_problem(photons=5000.0, background=background, D=60, fluence_spread=0.0)
    rng = np.random.default_rng(7)
    # Rows that differ by a tenth, as neighbouring poses do.
    slices = problem.slices[:1] * rng.gamma(100.0, 0.01, problem.slices.shape)
    signal = slices[problem.rows] * problem.pixels.correction
    counts = rng.poisson(np.exp(step) * signal + problem.pixels.background_or_zero)
    problem = replace(problem, slices=slices.astype(np.float32), counts=counts)
    likelihood, frames = likelihood_of(kind, problem), problem.frames()
    exact = differences(likelihood, problem, frames, step, None, by_pixel)
    without = np.sqrt(np.mean((differences(likelihood, problem, frames, step, False, by_pixel) - exact) ** 2))
    with_it = np.sqrt(np.mean((differences(likelihood, problem, frames, step, True, by_pixel) - exact) ** 2))
    assert with_it < without / gain


def test_dark_frames_and_frames_without_fluence_stay_as_they_are(make_problem) -> None:
    problem = make_problem(background=0.2)
    likelihood, frames = Poisson(problem.pixels), problem.frames()
    operand, offsets = likelihood.expand(problem.slices)
    slopes = likelihood.fluence_slopes(problem.slices)
    fluence = problem.fluence.copy()
    fluence[1] = 0.0
    product = problem.product(operand)
    plain = likelihood.scores(product, offsets, frames)
    moved = likelihood.scores(product, offsets, frames, slopes=slopes, frame_fluence=fluence)
    np.testing.assert_array_equal(plain[:, :2], moved[:, :2])
    assert np.abs(plain - moved)[:, 2:].max() > 1.0


def test_fluences_that_are_exact_need_no_slope(make_problem) -> None:
    problem = make_problem()
    assert Poisson(problem.pixels).fluence_slopes(problem.slices) is None


@pytest.mark.gpu
@pytest.mark.parametrize("by_pixel", [False, True])
def test_the_gpu_gives_the_same(make_problem, by_pixel) -> None:
    import cupy

    problem = make_problem(background=0.3)
    epsilon2 = np.full(problem.pixels.n_pixels, 0.1, np.float32)
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices
    here = NegativeBinomial(problem.pixels, epsilon2).fluence_slopes(slices, 1.2, by_pixel)
    there = NegativeBinomial(problem.pixels_on_gpu(), cupy.asarray(epsilon2))
    far = there.fluence_slopes(cupy.asarray(slices), 1.2, by_pixel)
    # A slope is a small difference of long sums, in float32 there: rounding is a share of what was summed.
    ones = np.ones(len(here))
    summed = 1.2 * (problem.expected(1.0).sum(axis=1) + float(problem.pixels.safe_reference.sum()) * ones)
    assert (np.abs(far.get() - here) <= 2e-7 * summed).all()
