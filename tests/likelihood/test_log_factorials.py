"""The part of the log-likelihood that is the same for all poses."""

import numpy as np
import pytest
from scipy.special import gammaln

from orienteer.compute.arrays import to_numpy
from orienteer.likelihood.base import sum_log_factorials
from orienteer.likelihood.frames import FrameBatch, Layout
from orienteer.source.patterns import Patterns

RNG = np.random.default_rng(8)
N_SCORED = 300


def plain(K: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Every factor of every product by itself, for whole counts; log-gammas for the others."""
    result = np.zeros(len(K))
    for d, frame in enumerate(K):
        for count, dispersion in zip(frame, e, strict=True):
            rising = np.log1p(np.arange(int(count)) * dispersion).sum()
            if count != int(count):
                r = 1 / dispersion
                rising = gammaln(count + r) - gammaln(r) - count * np.log(r)
            result[d] += gammaln(count + 1) - rising
    return result


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("photons", [0.3, 30.0, 3000.0])
def test_log_factorials_are_right_for_few_and_many_photons(
    photons: float, layout: Layout, device: str
) -> None:
    K = RNG.poisson(photons * RNG.exponential(size=(6, N_SCORED + 20)))
    K[0] = 0
    frames = FrameBatch.prepare(
        Patterns(K.astype(np.uint16)), np.arange(K.shape[1]), N_SCORED, device, layout
    )
    e = 10 ** RNG.uniform(-9, 0.3, size=N_SCORED)
    for dispersion in (e, 0 * e):
        wanted = plain(K[:, :N_SCORED], dispersion)
        found = to_numpy(sum_log_factorials(frames, dispersion))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(to_numpy(sum_log_factorials(frames)), plain(K[:, :N_SCORED], 0 * e), rtol=1e-9)


def test_counts_that_are_not_whole_or_below_zero_have_log_gammas_too() -> None:
    K = RNG.gamma(1.0, 3.0, size=(3, N_SCORED)).astype(np.float32)
    e = np.full(N_SCORED, 0.2)
    wanted = plain(K.astype(np.float64), e)
    frames = FrameBatch.prepare(Patterns(K), np.arange(N_SCORED), N_SCORED, "cpu", "dense")
    np.testing.assert_allclose(sum_log_factorials(frames, e), wanted, rtol=1e-9)
    K[:, ::2] = 0
    dark = FrameBatch.prepare(Patterns(K), np.arange(N_SCORED), N_SCORED, "cpu", "dense")
    K[:, ::2] = -1.5
    below = FrameBatch.prepare(Patterns(K), np.arange(N_SCORED), N_SCORED, "cpu", "dense")
    np.testing.assert_array_equal(sum_log_factorials(below, e), sum_log_factorials(dark, e))
