"""The Gaussian with fluence: the paper's formula with its best fluence put in, by one product."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.likelihood.gaussian import Gaussian


def paper(problem, sigma):
    """(Q, phi) of Ekeberg, Engblom and Liu, eq. 2.3 and 2.6, (T, D) float64, pixel by pixel."""
    S = problem.pixels.n_scored
    s = problem.expected(1.0)[:, None, :]
    K = problem.counts[None, 1:, :S].astype(float)  # frame 0 is dark
    allowed = 1.0 if problem.missing is None else ~problem.missing[None, 1:, :S]
    phi = (K**2).sum(2) / (s * K).sum(2)
    return -(allowed * (K / phi[:, :, None] - s) ** 2).sum(2) / (2 * sigma**2), phi


@pytest.mark.parametrize("photons", [1000.0, 1e9])
@pytest.mark.parametrize("missing", [False, True])
def test_scores_and_fluences_are_those_of_the_paper(make_problem, missing, photons) -> None:
    problem = make_problem(photons=photons, missing=missing)
    sigma = 0.5
    likelihood, frames = Gaussian(problem.pixels, sigma), problem.frames()
    assert np.isfinite(likelihood.expand(problem.slices, form="half")[0]).all()
    operand, offsets = likelihood.expand(problem.slices)
    product = problem.product(operand)
    less = problem.missing_product(likelihood.expand_missing(problem.slices)) if missing else None
    scores = likelihood.scores(product, offsets, frames, missing=less)
    expected, phi = paper(problem, sigma)
    np.testing.assert_array_equal(scores[:, 0], 0.0)
    norm = offsets[:, None] / (2 * sigma**2)
    assert (np.abs(scores[:, 1:] - expected) / norm).max() < 1e-6
    # Merged with a responsibility of 1, a frame is divided by its fluence; a dark one leaves nothing.
    inverse = likelihood.merge_weights(np.ones_like(product), frames, product=product).numerator
    np.testing.assert_allclose(inverse[:, 1:], 1 / phi, rtol=1e-5)
    np.testing.assert_array_equal(inverse[:, 0], 0.0)
    np.testing.assert_array_equal(scores[:, 1:].argmax(0), problem.rows[1:])


def test_both_layouts_give_the_same(make_problem) -> None:
    problem = make_problem()
    likelihood = Gaussian(problem.pixels, 1.0)
    (a, u), (b, v) = (
        likelihood.expand(problem.slices),
        likelihood.expand(problem.slices.T.copy(), by_pixel=True),
    )
    np.testing.assert_array_equal(a, b.T)
    np.testing.assert_allclose(u, v, rtol=1e-12)


def test_a_noiseless_model_is_a_fixed_point_of_the_merge(make_problem) -> None:
    problem = make_problem(T=5)
    rows = np.arange(21) % 5
    fluence = np.linspace(0.5, 3, 21)
    signal = problem.pixels.signal(problem.slices, False)
    counts = fluence[:, None] * signal[rows]
    exact = replace(problem, counts=counts, fluence=fluence)
    likelihood, frames = Gaussian(problem.pixels, 1.0), exact.frames()
    product = exact.product(likelihood.expand(problem.slices)[0])
    weights = likelihood.merge_weights(
        (rows == np.arange(5)[:, None]).astype(np.float32), frames, product=product
    )
    merged = weights.numerator @ counts / (weights.row[:, None] * problem.pixels.correction)
    np.testing.assert_allclose(merged, signal / problem.pixels.correction, rtol=1e-5)


def test_the_constant_counts_the_pixels_that_are_there(make_problem) -> None:
    problem = make_problem(missing=True)
    S = problem.pixels.n_scored
    n = (~problem.missing[:, :S]).sum(1)
    np.testing.assert_allclose(
        Gaussian(problem.pixels, 3.0).frame_constant(problem.frames()), -0.5 * n * np.log(2 * np.pi * 9)
    )


def test_what_it_cannot_do_is_refused(make_problem) -> None:
    with pytest.raises(OrienteerError, match="background"):
        Gaussian(make_problem(background=0.1).pixels, 1.0)
    with pytest.raises(OrienteerError, match="positive"):
        Gaussian(make_problem().pixels, 0.0)


@pytest.mark.gpu
def test_the_gpu_gives_the_same(make_problem) -> None:
    import cupy

    problem = make_problem(missing=True)
    here, there = Gaussian(problem.pixels, 0.7), Gaussian(problem.pixels_on_gpu(), 0.7)
    frames, far = problem.frames(), problem.frames(xp=cupy)
    operand, offsets = here.expand(problem.slices)
    product = problem.product(operand)
    far_operand, far_offsets = there.expand(cupy.asarray(problem.slices))
    np.testing.assert_allclose(far_operand.get(), operand, rtol=1e-6)
    scores = here.scores(product, offsets, frames)
    np.testing.assert_allclose(
        there.scores(cupy.asarray(product), far_offsets, far).get(), scores, rtol=1e-5, atol=1e-3
    )
    p = np.random.default_rng(5).random(product.shape).astype(np.float32)
    a = here.merge_weights(p, frames, product=product)
    b = there.merge_weights(cupy.asarray(p), far, product=cupy.asarray(product))
    for x, y in ((a.numerator, b.numerator), (a.row, b.row), (a.denominator, b.denominator)):
        np.testing.assert_allclose(y.get(), x, rtol=1e-6)
    np.testing.assert_allclose(there.frame_constant(far).get(), here.frame_constant(frames))
