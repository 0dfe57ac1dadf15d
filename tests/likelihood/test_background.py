"""Background: the signal's share of the photons, the EM update, and blank frames."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.likelihood.background import (
    background_photons,
    estimate_background,
    signal_share,
    update_background,
)


@pytest.mark.parametrize("by_pixel", [False, True])
def test_share_and_rest_make_up_all_photons(make_problem, by_pixel) -> None:
    problem = make_problem(background=0.4)
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices
    share = signal_share(slices, problem.pixels, 1.5, by_pixel)
    assert share.dtype == np.float32
    rows = share.T if by_pixel else share
    S = problem.pixels.n_scored
    lam = problem.expected(1.5)
    np.testing.assert_allclose(rows[:, :S], 1 - problem.pixels.background[:S] / lam, rtol=1e-5, atol=1e-6)
    merged = np.random.default_rng(1).random(share.shape).astype(np.float32)
    rest = background_photons(merged, share, by_pixel)
    axis = 1 if by_pixel else 0
    np.testing.assert_allclose(rest + (merged * share).sum(axis), merged.sum(axis), rtol=1e-5)


def test_without_background_all_photons_are_signal_even_where_the_model_is_empty(make_problem) -> None:
    problem = make_problem()
    np.testing.assert_array_equal(signal_share(problem.slices, problem.pixels, 1.0), 1.0)
    assert np.isfinite(signal_share(problem.slices, problem.pixels, 0.0)).all()


def test_the_update_converges_to_the_simulated_background(make_problem) -> None:
    problem = make_problem(photons=400.0, background=0.6, T=6, D=3000, fluence_spread=0.0)
    pixels = replace(problem.pixels, background=np.full_like(problem.pixels.correction, 0.1))
    responsibilities = (problem.rows == np.arange(6)[:, None]).astype(np.float32)
    merged = responsibilities @ problem.counts.astype(np.float32)
    previous = -np.inf
    for _ in range(150):
        lam = pixels.signal(problem.slices, False).astype(float) + pixels.background
        likelihood = float((merged * np.log(lam) - responsibilities.sum(1)[:, None] * lam).sum())
        assert likelihood >= previous - 1e-6 * abs(previous)
        previous = likelihood
        photons = background_photons(merged, signal_share(problem.slices, pixels, 1.0))
        pixels = replace(pixels, background=update_background(photons, len(problem.counts)))
    faint = problem.slices.max(0) < 0.5
    assert faint.sum() > 200
    # Frame 0 was made dark.
    error = pixels.background[faint] / (problem.pixels.background[faint] * (1 - 1 / 3000)) - 1
    assert abs(error.mean()) < 0.01
    assert error.std() < 0.06


def test_a_pixel_that_no_frame_saw_has_no_background() -> None:
    found = update_background(np.array([4.0, 0.0]), 4, missing=np.array([2.0, 4.0]))
    assert found.tolist() == [2.0, 0.0]


def test_few_blank_frames_are_drawn_towards_their_shell_and_many_are_not() -> None:
    rng = np.random.default_rng(3)
    shell = np.repeat(np.arange(4), 500)
    truth = np.array([2.0, 1.0, 0.3, 0.05])[shell]
    truth[500:1000] *= rng.gamma(20.0, 1 / 20.0, 500)  # one shell is uneven
    few = rng.poisson(truth, (10, 2000))
    plain, shrunk = (estimate_background(few, s) for s in (None, shell))

    def error(found, part):
        return float(np.sqrt(np.mean((found - truth)[part] ** 2)))

    for s in range(4):
        assert error(shrunk, shell == s) < error(plain, shell == s)
    assert error(shrunk, shell == 0) < 0.25 * error(plain, shell == 0)
    many = rng.poisson(truth, (4000, 2000))
    assert error(estimate_background(many, shell), shell == 1) < 0.03


def test_no_blank_frames_is_an_error() -> None:
    with pytest.raises(OrienteerError, match="no blank frame"):
        estimate_background(np.zeros((0, 7)))


@pytest.mark.gpu
def test_the_gpu_gives_the_same(make_problem) -> None:
    import cupy

    problem = make_problem(background=0.4)
    share = signal_share(problem.slices, problem.pixels, 1.5)
    far = signal_share(cupy.asarray(problem.slices), problem.pixels_on_gpu(), 1.5)
    np.testing.assert_allclose(far.get(), share, rtol=1e-5)
    photons = background_photons(cupy.asarray(share), far)
    np.testing.assert_allclose(photons.get(), background_photons(share, share), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        update_background(photons, 5, cupy.ones(len(photons))).get(),
        update_background(photons.get(), 5, np.ones(len(photons))),
    )
    shell = np.arange(413) // 50
    np.testing.assert_allclose(
        estimate_background(cupy.asarray(problem.counts), cupy.asarray(shell)).get(),
        estimate_background(problem.counts, shell),
        rtol=1e-6,
    )
