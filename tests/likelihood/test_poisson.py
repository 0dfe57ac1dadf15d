"""Poisson scores: true log-likelihoods, exact in fluence, finite on empty voxels, fair to missing pixels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from orienteer.likelihood.background import signal_share
from orienteer.likelihood.poisson import Poisson
from orienteer.likelihood.product import product_of


def scored(likelihood, problem, frames, fluence, by_pixel=False):
    """Scores as the engine makes them; with a background, one group for each frame."""
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices

    def at(group, frames, problem, fluence):
        operand, offsets = likelihood.expand(slices, group, by_pixel)
        missing = None
        if problem.missing is not None:
            missing = problem.missing_product(likelihood.expand_missing(problem.slices, group))
        return likelihood.scores(
            problem.product(operand, by_pixel), offsets, frames, fluence=fluence, missing=missing
        )

    if not likelihood.needs_fluence_groups:
        return at(1.0, frames, problem, fluence)
    columns = []
    for d, phi in enumerate(fluence):
        one = replace(
            problem,
            counts=problem.counts[d : d + 1],
            missing=None if problem.missing is None else problem.missing[d : d + 1],
        )
        columns.append(at(float(phi), frames[d : d + 1], one, float(phi)))
    return np.concatenate(columns, axis=1)


def true_log_likelihood(problem):
    """(T, D) in float64 by SciPy."""
    S = problem.pixels.n_scored
    lam = problem.expected(problem.fluence[:, None, None])
    terms = stats.poisson.logpmf(problem.counts[:, None, :S], lam)
    if problem.missing is not None:
        terms = np.where(problem.missing[:, None, :S], 0.0, terms)
    return terms.sum(2).T


@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("background", [0.0, 0.3])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_score_and_constant_are_the_log_likelihood(
    make_problem, layout, background, missing, by_pixel
) -> None:
    problem = make_problem(background=background, missing=missing)
    likelihood, frames = Poisson(problem.pixels), problem.frames(layout)
    scores = scored(likelihood, problem, frames, problem.fluence, by_pixel)
    constant = np.concatenate(
        [likelihood.frame_constant(frames[d : d + 1], float(phi)) for d, phi in enumerate(problem.fluence)]
    )
    expected = true_log_likelihood(problem)
    assert scores.dtype == np.float32
    # Frame 0 is dark: its posterior is flat by decree.
    np.testing.assert_array_equal(scores[:, 0], 0.0)
    difference = (scores.astype(float) + constant)[:, 1:] - expected[:, 1:]
    if missing:  # the reference's own missing photons are not a constant that anybody computes
        difference -= difference.mean(0)
    assert np.abs(difference).max() < 2e-3


def test_the_true_row_wins(make_problem) -> None:
    problem = make_problem(photons=3000.0)
    scores = scored(Poisson(problem.pixels), problem, problem.frames(), problem.fluence)
    np.testing.assert_array_equal(scores[:, 1:].argmax(0), problem.rows[1:])


def test_bright_frames_lose_no_nats_to_float32(make_problem) -> None:
    problem = make_problem(photons=1e6, fluence_spread=0.0)
    scores = scored(Poisson(problem.pixels), problem, problem.frames(), problem.fluence).astype(float)
    expected = true_log_likelihood(problem)
    close = expected > expected.max(0) - 1e4
    error = (scores - scores.max(0)) - (expected - expected.max(0))
    # Operands are float32 numbers of order 1, and the product is rounded to float32.
    assert np.abs(error[:, 1:][close[:, 1:]]).max() < 0.1


def test_two_float16_terms_around_the_centre_are_good_to_a_tenth_of_a_nat(make_problem) -> None:
    problem = make_problem(photons=1e5, P=4000, S=4000, fluence_spread=0.0)
    likelihood, frames = Poisson(problem.pixels), problem.frames()
    expected = true_log_likelihood(problem)

    def error(operand, offsets):
        product = (operand @ problem.counts.T.astype(float)).astype(np.float32)
        scores = likelihood.scores(product, offsets, frames).astype(float)
        difference = (scores - expected)[:, 1:]
        return np.abs(difference - difference[:1]).max()

    split, offsets = likelihood.expand(problem.slices, form="split")
    assert error(split.high.astype(float) + split.low.astype(float) / 2048, offsets) < 0.1
    assert error(split.high.astype(float), offsets) > 0.1  # one term is not enough: the test can tell


def test_a_photon_on_an_empty_voxel_costs_finite_nats(make_problem) -> None:
    problem = make_problem()
    scores = scored(Poisson(problem.pixels), problem, problem.frames(), problem.fluence)
    assert np.isfinite(scores).all()
    counts = np.zeros_like(problem.counts[:1])
    counts[0, 10] = 1  # row 3 is empty there
    one = replace(problem, counts=counts, fluence=np.ones(1))
    scores = scored(Poisson(problem.pixels), one, one.frames(), one.fluence)
    S = problem.pixels.n_scored
    u = problem.expected(1.0)[:, :S].sum(1)
    cost = scores[:, 0] + u - u.mean()
    assert -12.0 < cost[3] - np.median(cost) < -4.0


def test_a_reference_of_zeros_gives_finite_numbers(make_problem) -> None:
    problem = make_problem()
    pixels = replace(problem.pixels, reference=np.zeros_like(problem.pixels.reference))
    operand, offsets = Poisson(pixels).expand(np.zeros_like(problem.slices))
    assert np.isfinite(operand).all()
    assert np.isfinite(offsets).all()


def test_centring_changes_no_difference_between_rows(make_problem) -> None:
    problem = make_problem()
    other = replace(
        problem.pixels, reference=problem.pixels.reference * np.float32(1.7), floor_fraction=1e-3 / 1.7
    )
    a, b = (
        scored(Poisson(pixels), problem, problem.frames(), problem.fluence)
        for pixels in (problem.pixels, other)
    )
    np.testing.assert_allclose(a - a[0], b - b[0], atol=2e-3)


def test_merging_true_rows_gives_back_the_model(make_problem) -> None:
    problem = make_problem(photons=2000.0, background=0.5, T=4, D=1200, fluence_spread=0.2)
    likelihood, frames = Poisson(problem.pixels), problem.frames()
    responsibilities = (problem.rows == np.arange(4)[:, None]).astype(np.float32)
    model = np.full_like(problem.slices, problem.slices.mean())
    weights = likelihood.merge_weights(responsibilities, frames, fluence=problem.fluence)
    np.testing.assert_allclose(weights.row, responsibilities @ problem.fluence, rtol=1e-6)
    assert weights.denominator is None
    for _ in range(60):
        share = signal_share(model, problem.pixels, 1.0)
        merged = weights.numerator @ problem.counts.astype(np.float32)
        model = share * merged / (weights.row[:, None] * problem.pixels.correction)
    bright = problem.slices > 1.0
    bright[3, 5:40] = False
    error = (model / np.where(bright, problem.slices, 1) - 1)[bright]
    assert abs(np.median(error)) < 0.01
    assert np.std(error) < 0.1


def test_missing_pixels_take_their_weight_back(make_problem) -> None:
    problem = make_problem(missing=True)
    weights = Poisson(problem.pixels).merge_weights(
        np.ones((3, 21), np.float32), problem.frames(), fluence=problem.fluence
    )
    np.testing.assert_allclose(weights.denominator.sum(1), weights.row, rtol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("background", [0.0, 0.3])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_gpu_gives_the_same_scores_and_constants(make_problem, background, layout) -> None:
    import cupy

    problem = make_problem(background=background)
    here, there = Poisson(problem.pixels), Poisson(problem.pixels_on_gpu())
    frames, far = problem.frames(layout), problem.frames(layout, cupy)
    operand, offsets = here.expand(problem.slices, 1.2)
    far_operand, far_offsets = there.expand(cupy.asarray(problem.slices), 1.2)
    product = problem.product(operand)
    scores = here.scores(product, offsets, frames, fluence=1.2)
    far_scores = there.scores(cupy.asarray(product), far_offsets, far, fluence=1.2)
    np.testing.assert_allclose(far_operand.get(), operand, atol=2e-6)
    np.testing.assert_allclose(far_scores.get(), scores, atol=1e-3)
    np.testing.assert_allclose(
        there.frame_constant(far, 1.2).get(), here.frame_constant(frames, 1.2), rtol=1e-9
    )
    p = np.random.default_rng(5).random((33, 21)).astype(np.float32)
    weights = there.merge_weights(cupy.asarray(p), far, fluence=cupy.asarray(problem.fluence))
    np.testing.assert_allclose(weights.row.get(), p @ problem.fluence, rtol=1e-6)
    if background:
        share = signal_share(cupy.asarray(problem.slices), there.pixels, 1.2)
        np.testing.assert_allclose(share.get(), signal_share(problem.slices, here.pixels, 1.2), rtol=1e-5)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_products_of_the_engine_give_the_same_scores_and_merges(make_problem, layout) -> None:
    problem = make_problem(missing=True)
    likelihood, frames = Poisson(problem.pixels), problem.frames(layout)
    product = product_of(frames)
    slices = np.ascontiguousarray(problem.slices.T) if product.by_pixel else problem.slices
    operand, offsets = likelihood.expand(slices, by_pixel=product.by_pixel)
    missing = product.missing_scores(likelihood.expand_missing(slices, by_pixel=product.by_pixel))
    scores = likelihood.scores(
        product.scores(operand), offsets, frames, fluence=problem.fluence, missing=missing
    )
    np.testing.assert_allclose(
        scores, scored(likelihood, problem, frames, problem.fluence), rtol=1e-5, atol=2e-3
    )
    responsibilities = np.random.default_rng(1).random((33, 21)).astype(np.float32)
    weights = likelihood.merge_weights(responsibilities, frames, fluence=problem.fluence)
    taken_back = product.missing_merge(weights.denominator)
    taken_back = taken_back.T if product.by_pixel else taken_back
    allowed = (responsibilities * problem.fluence) @ ~problem.missing
    np.testing.assert_allclose(weights.row[:, None] - taken_back, allowed, rtol=1e-4)


@pytest.mark.gpu
def test_two_float16_terms_go_through_the_tensor_cores(make_problem) -> None:
    import cupy

    problem = make_problem(photons=3000.0)
    there, far = Poisson(problem.pixels_on_gpu()), problem.frames(xp=cupy)
    slices = cupy.asarray(problem.slices)
    single, offsets = there.expand(slices)
    split, offsets_again = there.expand(slices, form="split")
    product = product_of(far, "split")
    expected = problem.product(single.get())
    np.testing.assert_allclose(product.scores(split).get(), expected, rtol=1e-5, atol=1e-2)
    np.testing.assert_allclose(product.scores(single).get(), expected, rtol=1e-5, atol=1e-2)
    np.testing.assert_array_equal(offsets.get(), offsets_again.get())
