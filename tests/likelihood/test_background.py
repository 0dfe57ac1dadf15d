"""Background: the signal's share of the photons."""

import numpy as np
import pytest

from orienteer.likelihood.background import signal_share


@pytest.mark.parametrize("by_pixel", [False, True])
def test_the_share_is_that_of_the_expected_photons(make_problem, by_pixel) -> None:
    problem = make_problem(background=0.4)
    slices = np.ascontiguousarray(problem.slices.T) if by_pixel else problem.slices
    share = signal_share(slices, problem.pixels, 1.5, by_pixel)
    assert share.dtype == np.float32
    rows = share.T if by_pixel else share
    S = problem.pixels.n_scored
    lam = problem.expected(1.5)
    np.testing.assert_allclose(rows[:, :S], 1 - problem.pixels.background[:S] / lam, rtol=1e-5, atol=1e-6)


def test_without_background_all_photons_are_signal_even_where_the_model_is_empty(make_problem) -> None:
    problem = make_problem()
    np.testing.assert_array_equal(signal_share(problem.slices, problem.pixels, 1.0), 1.0)
    assert np.isfinite(signal_share(problem.slices, problem.pixels, 0.0)).all()


@pytest.mark.gpu
def test_the_gpu_gives_the_same(make_problem) -> None:
    import cupy

    problem = make_problem(background=0.4)
    share = signal_share(problem.slices, problem.pixels, 1.5)
    far = signal_share(cupy.asarray(problem.slices), problem.pixels_on_gpu(), 1.5)
    np.testing.assert_allclose(far.get(), share, rtol=1e-5)
