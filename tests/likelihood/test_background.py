"""Background: the signal's share of the photons."""

import numpy as np
import pytest

from orienteer.likelihood.background import merged_signal, signal_share, weights_of_pixels
from orienteer.likelihood.pixel_model import PixelModel


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


@pytest.mark.parametrize("by_pixel", [False, True])
@pytest.mark.parametrize("strength", [0.5, 200.0])
def test_a_merge_over_any_background_is_the_model_at_once(by_pixel: bool, strength: float) -> None:
    """Each photon's expected share of signal would move a model by 1/200 of what is wrong."""
    rng = np.random.default_rng(3)
    T, P, fluence = 4, 60, 1.3
    mean = rng.uniform(0.5, 2.0, P).astype(np.float32)
    pixels = PixelModel(mean, mean, P, (strength * rng.uniform(0.5, 1.5, P)).astype(np.float32))
    truth = rng.gamma(2.0, 0.5, (T, P))
    rows, hidden = rng.uniform(1.0, 5.0, T), rng.uniform(0.0, 0.5, (T, P))
    shown = rows[:, None] - hidden
    counted = shown * (fluence * mean * truth + pixels.background)
    turn = (lambda x: np.ascontiguousarray(x.T)) if by_pixel else np.ascontiguousarray
    values, share = merged_signal(turn(counted), turn(shown), pixels, fluence, by_pixel)
    weights = weights_of_pixels(mean * share, fluence * rows, turn(fluence * hidden), by_pixel)
    np.testing.assert_allclose(values / weights, turn(truth), rtol=2e-4, atol=1e-4)
    # Pixels count by what they tell: signal squared over all photons.
    expected = fluence * mean
    np.testing.assert_allclose(share, expected / (expected + pixels.background), rtol=1e-5)


@pytest.mark.gpu
def test_the_gpu_gives_the_same(make_problem) -> None:
    import cupy

    problem = make_problem(background=0.4)
    share = signal_share(problem.slices, problem.pixels, 1.5)
    far = signal_share(cupy.asarray(problem.slices), problem.pixels_on_gpu(), 1.5)
    np.testing.assert_allclose(far.get(), share, rtol=1e-5)
