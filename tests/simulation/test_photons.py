"""Photons: the right distribution, and numbers that belong to seed, shot and pixel alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from orienteer.errors import OrienteerError
from orienteer.simulation.photons import draw_normal, draw_photons, generator_key, list_photons
from orienteer.source.sparse_photons import dense_from_photons

MEANS = [1e-3, 0.03, 0.5, 0.999, 1.0, 3.0, 9.99, 10.0, 30.0, 300.0, 1e4, 1e5]


def drawn(mean: float, n_frames: int = 20, n_pixels: int = 10_001, seed: int = 1) -> np.ndarray:
    expected = np.full((n_frames, n_pixels), mean, np.float32)
    return np.asarray(draw_photons(expected, seed, np.arange(n_frames)))


@pytest.mark.parametrize("mean", MEANS)
def test_counts_follow_the_poisson_distribution(mean: float) -> None:
    counts, exact = drawn(mean), stats.poisson(np.float32(mean))
    low, high = exact.ppf([1e-6, 1 - 1e-6])
    edges = np.unique(np.linspace(low, high, 60).astype(int))
    probability = np.diff(np.concatenate([[0], exact.cdf(edges), [1]]))
    observed = np.histogram(counts, np.concatenate([[-1], edges, [2**31]]) + 0.5)[0]
    expected = probability * counts.size
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-300))
    chi_square = ((observed - expected)[expected > 1] ** 2 / expected[expected > 1]).sum()
    assert stats.chi2.sf(chi_square, max(1, (expected > 1).sum() - 1)) > 1e-4


@pytest.mark.parametrize("mean", MEANS)
def test_mean_and_variance_equal_the_mean(mean: float) -> None:
    counts = drawn(mean, seed=2).astype(float)
    n, mean = counts.size, float(np.float32(mean))
    assert counts.mean() == pytest.approx(mean, abs=5 * np.sqrt(mean / n))
    assert counts.var() == pytest.approx(mean, abs=6 * np.sqrt((mean + 2 * mean**2) / n))


def test_rare_photons_are_as_frequent_as_they_should_be() -> None:
    # One 32-bit word could not resolve these probabilities; the 64-bit number behind it does.
    counts = drawn(1e-5, 60, 100_000)
    assert counts.sum() == pytest.approx(60, abs=5 * np.sqrt(60))


def test_neighbours_and_frames_are_uncorrelated() -> None:
    counts = drawn(2.0, 100, 4000, seed=3).astype(float) - 2.0
    for a, b in [(counts[:, 1:], counts[:, :-1]), (counts[:, 4:], counts[:, :-4]), (counts[1:], counts[:-1])]:
        assert abs((a * b).mean() / 2.0) < 5 / np.sqrt(a.size)


@given(first=st.integers(0, 7), last=st.integers(8, 12), seed=st.integers(0, 2**40))
@settings(max_examples=15, deadline=None)
def test_a_frame_has_the_same_photons_in_any_batch(first: int, last: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = (10 ** rng.uniform(-3, 3, (12, 37))).astype(np.float32)
    event_id = rng.integers(0, 2**63, 12).astype(np.uint64)
    whole = draw_photons(expected, seed, event_id)
    np.testing.assert_array_equal(
        whole[first:last], draw_photons(expected[first:last], seed, event_id[first:last])
    )
    np.testing.assert_array_equal(whole[::-1], draw_photons(expected[::-1].copy(), seed, event_id[::-1]))


def test_threads_do_not_matter() -> None:
    import numba

    whole = drawn(1.0, 8, 9000)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(whole, drawn(1.0, 8, 9000))
    finally:
        numba.set_num_threads(before)


def test_seed_and_event_change_the_photons() -> None:
    expected = np.full((1, 1000), 5.0, np.float32)
    base = draw_photons(expected, 1, np.array([2**40]))
    assert (base != draw_photons(expected, 2, np.array([2**40]))).mean() > 0.7
    assert (base != draw_photons(expected, 1, np.array([2**40 + 1]))).mean() > 0.7
    assert (base != draw_photons(expected, 1, np.array([2**41]))).mean() > 0.7


def test_no_light_gives_no_photons() -> None:
    assert not drawn(0.0).any()


@pytest.mark.parametrize("mean", [np.nan, -1e-6, np.inf, 2e9])
def test_a_mean_that_is_no_mean_is_an_error_that_names_the_event(mean: float) -> None:
    expected = np.ones((3, 5), np.float32)
    expected[1, 4] = mean
    with pytest.raises(OrienteerError, match="event 71"):
        draw_photons(expected, 0, np.array([70, 71, 72]))


def test_the_generator_gives_the_published_numbers() -> None:
    # Known answers of Philox 4x32-10 from Salmon et al. (2011), digits of pi as counter and key.
    from orienteer.simulation._photons_numba import philox

    digits = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
    words = philox(*(np.uint64(digit) for digit in digits))
    assert [int(word) for word in words] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_own_functions_equal_those_of_the_library() -> None:
    from orienteer.simulation import _photons_numba as twin

    x = 10 ** np.linspace(-9, 9, 200)
    np.testing.assert_allclose([twin.log_(v) for v in x], np.log(x), rtol=1e-14, atol=1e-15)
    small = np.linspace(0, 10, 300)
    np.testing.assert_allclose([twin.exp_of_minus(v) for v in small], np.exp(-small), rtol=1e-14)
    k = np.array([0, 1, 2, 5, 10, 11, 12, 13, 100, 1e5, 1e9])
    np.testing.assert_allclose(
        [twin.log_factorial(float(v)) for v in k],
        stats.poisson(1.0).logpmf(k) * -1 - 1,
        rtol=1e-12,
        atol=1e-10,
    )


def test_noise_is_normal_and_belongs_to_its_frame() -> None:
    noise = draw_normal(np.empty((50, 4001), np.float32), 4, np.arange(50))
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert abs((noise[:, 1:] * noise[:, :-1]).mean()) < 5 / np.sqrt(noise.size)
    again = draw_normal(np.empty((1, 4001), np.float32), 4, np.array([7]))
    np.testing.assert_array_equal(noise[7], again[0])


def test_lists_of_photons_hold_the_same_counts() -> None:
    counts = drawn(0.05, 30, 501)
    photons = list_photons(counts)
    np.testing.assert_array_equal(dense_from_photons(photons), counts)
    assert len(list_photons(counts[:0])) == 0
    assert list_photons(np.zeros((2, 5), np.int32)).start.tolist() == [0, 0, 0]


def test_any_seed_has_a_key() -> None:
    keys = {generator_key(seed) for seed in (0, 1, 2**31, 2**64, 2**128 - 1)}
    assert len(keys) == 5


@pytest.mark.gpu
def test_both_twins_count_the_same_photons() -> None:
    import cupy

    rng = np.random.default_rng(8)
    expected = (10 ** rng.uniform(-7, 7, (50, 5003))).astype(np.float32)
    event_id = rng.integers(0, 2**63, 50).astype(np.uint64)
    on_cpu = draw_photons(expected, 9, event_id)
    on_gpu = draw_photons(cupy.asarray(expected), 9, cupy.asarray(event_id))
    np.testing.assert_array_equal(on_cpu, on_gpu.get())
    photons = list_photons(on_gpu)
    assert type(photons.pixel).__module__.startswith("cupy")
    reference = list_photons(on_cpu)
    for name in ("start", "pixel", "count"):
        np.testing.assert_array_equal(getattr(photons, name).get(), getattr(reference, name))
    noise = draw_normal(cupy.asarray(expected), 3, cupy.asarray(event_id)).get()
    np.testing.assert_allclose(noise, draw_normal(expected, 3, event_id), atol=1e-6)
    with pytest.raises(OrienteerError, match="NaN"):
        draw_photons(cupy.full((1, 4), cupy.nan, cupy.float32), 0, cupy.arange(1))
