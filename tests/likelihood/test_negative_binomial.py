"""Negative binomial scores: SciPy's log-likelihood, Poisson in the limit, and the weights of the merge."""

import numpy as np
import pytest
from scipy import stats

from orienteer.errors import OrienteerError
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.poisson import Poisson


def dispersion_of(problem, value=None):
    P = problem.pixels.n_pixels
    return (
        np.full(P, value, np.float32) if value is not None else np.linspace(0.01, 1.0, P).astype(np.float32)
    )


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("background", [0.0, 0.3])
@pytest.mark.parametrize("fluence", [0.3, 1.0, 4.0])
def test_score_and_constant_are_the_log_likelihood(
    make_problem, fluence, background, by_pixel, layout
) -> None:
    problem = make_problem(background=background)
    S = problem.pixels.n_scored
    e = dispersion_of(problem)
    likelihood, frames = NegativeBinomial(problem.pixels, e), problem.frames(layout)
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices
    operand, offsets = likelihood.expand(slices, fluence, by_pixel)
    scores = likelihood.scores(problem.product(operand, by_pixel), offsets, frames, fluence=fluence)
    r, lam = 1 / e[:S].astype(float), problem.expected(fluence)
    expected = stats.nbinom.logpmf(problem.counts[:, None, :S], r, r / (r + lam)).sum(2).T
    found = scores.astype(float) + likelihood.frame_constant(frames, fluence)
    np.testing.assert_array_equal(scores[:, 0], 0.0)
    assert np.abs(found - expected)[:, 1:].max() < 2e-3


def test_missing_pixels_do_not_count(make_problem) -> None:
    problem = make_problem(missing=True)
    S = problem.pixels.n_scored
    e = dispersion_of(problem)
    likelihood = NegativeBinomial(problem.pixels, e)
    operand, offsets = likelihood.expand(problem.slices)
    missing = problem.missing_product(likelihood.expand_missing(problem.slices))
    scores = likelihood.scores(problem.product(operand), offsets, problem.frames(), missing=missing)
    r, lam = 1 / e[:S].astype(float), problem.expected(1.0)
    terms = stats.nbinom.logpmf(problem.counts[:, None, :S], r, r / (r + lam))
    expected = np.where(problem.missing[:, None, :S], 0.0, terms).sum(2).T
    difference = (scores - expected)[:, 1:]
    assert np.abs(difference - difference.mean(0)).max() < 2e-3


@pytest.mark.parametrize("dispersion", [0.0, 1e-8])
def test_poisson_is_the_limit(make_problem, dispersion) -> None:
    problem = make_problem(background=0.1)
    frames = problem.frames("sparse")
    poisson = Poisson(problem.pixels)
    limit = NegativeBinomial(problem.pixels, dispersion_of(problem, dispersion))
    (a, u), (b, v) = poisson.expand(problem.slices, 1.3), limit.expand(problem.slices, 1.3)
    np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(u, v, rtol=1e-6)
    product = problem.product(a)
    scores = [
        one.scores(product, offsets, frames, fluence=1.3) for one, offsets in ((poisson, u), (limit, v))
    ]
    # A score is a small difference of large sums; the limit holds to 1e-6 of those.
    np.testing.assert_allclose(*scores, atol=1e-6 * u.max())
    np.testing.assert_allclose(
        poisson.frame_constant(frames, 1.3), limit.frame_constant(frames, 1.3), rtol=1e-6
    )


def test_wrong_dispersions_are_refused(make_problem) -> None:
    problem = make_problem()
    with pytest.raises(OrienteerError, match="does not fit"):
        NegativeBinomial(problem.pixels, np.zeros(3, np.float32))
    with pytest.raises(OrienteerError, match="negative"):
        NegativeBinomial(problem.pixels, dispersion_of(problem, -1.0))


@pytest.mark.gpu
def test_the_gpu_gives_the_same(make_problem) -> None:
    import cupy

    problem = make_problem(background=0.2)
    e = dispersion_of(problem)
    here = NegativeBinomial(problem.pixels, e)
    there = NegativeBinomial(problem.pixels_on_gpu(), cupy.asarray(e))
    (a, u), (b, v) = here.expand(problem.slices, 1.3), there.expand(cupy.asarray(problem.slices), 1.3)
    np.testing.assert_allclose(b.get(), a, atol=3e-6)
    np.testing.assert_allclose(v.get(), u, rtol=1e-6)
    for layout in ("dense", "sparse"):
        frames, far = problem.frames(layout), problem.frames(layout, cupy)
        np.testing.assert_allclose(
            there.frame_constant(far, 1.3).get(), here.frame_constant(frames, 1.3), rtol=1e-8
        )
