"""Dispersion: the simulated eps^2 comes back, Poisson gives none, junk and hot pixels change little."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.likelihood.dispersion import dispersion_sums, estimate_dispersion, join_sums, usable_frames

SHELL = np.repeat(np.arange(10), 60)


def simulated(epsilon2, photons=2.0, D=400, seed=1):
    """(counts, expected) of D frames; each pixel's mean scatters by epsilon2 of its shell."""
    rng = np.random.default_rng(seed)
    expected = photons * rng.gamma(1.0, 1.0, (D, 600)) * rng.lognormal(0, 0.3, (D, 1))
    e = np.maximum(np.broadcast_to(epsilon2, 10)[SHELL], 1e-12)
    true = expected * rng.gamma(1 / e, e, expected.shape)
    return rng.poisson(true), expected


def estimated(counts, expected):
    return estimate_dispersion(dispersion_sums(counts, expected, SHELL, 10))


def test_sums_are_what_they_say() -> None:
    counts, expected = simulated(0.2, D=7)
    excess, square, photons, residual = dispersion_sums(counts, expected, SHELL[::-1].copy(), 11)
    for s in range(11):
        part = SHELL[::-1] == s
        k, lam = counts[:, part], expected[:, part]
        np.testing.assert_allclose(excess[:, s], ((k - lam) ** 2 - lam).sum(1), atol=1e-9)
        np.testing.assert_allclose(square[:, s], (lam**2).sum(1), atol=1e-9)
        np.testing.assert_allclose(photons[:, s], lam.sum(1), atol=1e-9)
        np.testing.assert_allclose(residual[:, s], (k - lam).sum(1), atol=1e-9)
    parts = [dispersion_sums(counts[i : i + 3], expected[i : i + 3], SHELL, 10) for i in (0, 3, 6)]
    for a, b in zip(join_sums(parts), dispersion_sums(counts, expected, SHELL, 10), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_faint_shells_keep_their_digits_beside_bright_ones() -> None:
    expected = np.where(SHELL == 0, 1e8, 1e-4)[None, :]
    square = dispersion_sums(np.zeros_like(expected), expected, SHELL, 10).square
    np.testing.assert_allclose(square[0, 1:], 60e-8, rtol=1e-12)


@pytest.mark.parametrize(("epsilon2", "photons"), [(0.05, 20.0), (0.3, 2.0), (0.3, 50.0), (2.0, 5.0)])
def test_the_simulated_dispersion_comes_back(epsilon2, photons) -> None:
    found = estimated(*simulated(epsilon2, photons))
    np.testing.assert_allclose(found, epsilon2, rtol=0.2)
    assert found.mean() == pytest.approx(epsilon2, rel=0.08)


def test_a_dispersion_that_changes_with_the_shell_is_followed() -> None:
    truth = np.linspace(0.5, 0.05, 10)
    np.testing.assert_allclose(estimated(*simulated(truth, 10.0)), truth, rtol=0.2, atol=0.01)


@pytest.mark.parametrize("photons", [1e-3, 0.02, 0.5, 10.0, 1000.0])
def test_poisson_counts_have_none(photons) -> None:
    found = estimated(*simulated(0.0, photons))
    # Several standard errors of the estimate at these sizes.
    per_shell = 400 * 60 * photons**2 * 2
    error = np.sqrt((2 * per_shell + 400 * 60 * photons) / per_shell**2)
    assert (found <= 5 * error).all()


def test_negative_estimates_become_zero_and_are_not_pushed_up_one_by_one() -> None:
    found = np.mean([estimated(*simulated(0.0, 0.5, seed=seed)).mean() for seed in range(6)])
    assert 0 <= found < 0.01


def test_a_fifth_of_junk_frames_changes_little() -> None:
    counts, expected = simulated(0.1, 5.0)
    rng = np.random.default_rng(9)
    junk = rng.choice(400, 80, replace=False)
    counts[junk] = rng.poisson(5.0 * rng.gamma(0.3, 1 / 0.3, (80, 600)))
    sums = dispersion_sums(counts, expected, SHELL, 10)
    kept = usable_frames(sums)
    assert kept[junk].mean() < 0.05
    assert np.delete(kept, junk).mean() > 0.98
    np.testing.assert_allclose(estimate_dispersion(sums), 0.1, rtol=0.35)


@pytest.mark.parametrize("photons", [0.3, 0.6, 2.0])
def test_faint_junk_that_no_shell_gives_away_changes_little(photons) -> None:
    """Three frames in ten with another radial profile: in a dim shell each is too faint to stand out."""
    counts, expected = simulated(0.1, photons, D=512)
    rng = np.random.default_rng(9)
    junk = rng.choice(512, 154, replace=False)
    profile = rng.lognormal(0, 1.0, (154, 10))[:, SHELL]
    counts[junk] = rng.poisson(photons * profile / profile.mean(axis=1, keepdims=True))
    alone = estimated(*(np.delete(array, junk, axis=0) for array in (counts, expected)))
    assert estimated(counts, expected).mean() < alone.mean() + 0.08


def test_a_few_hot_pixels_change_little() -> None:
    counts, expected = simulated(0.1, 0.3)
    rng = np.random.default_rng(9)
    for _ in range(4):
        counts[rng.integers(400), rng.integers(600)] = 40
    assert estimated(counts, expected).max() < 0.4


def test_shells_without_light_take_their_neighbours_value_or_none() -> None:
    counts, expected = simulated(0.3, 5.0)
    dark = (SHELL == 4) | (SHELL >= 8)
    counts[:, dark], expected[:, dark] = 0, 0.0
    found = estimated(counts, expected)
    assert found[4] == pytest.approx(0.3, rel=0.2)
    assert found[8] == pytest.approx(0.3, rel=0.2)
    assert found[9] == 0.0
    assert estimated(counts * 0, expected * 0).tolist() == [0.0] * 10


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OrienteerError, match="do not fit"):
        dispersion_sums(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(4, int), 2)


@pytest.mark.gpu
def test_the_gpu_gives_the_same() -> None:
    import cupy

    counts, expected = simulated(0.2)
    far = dispersion_sums(cupy.asarray(counts), cupy.asarray(expected), cupy.asarray(SHELL), 10)
    for a, b in zip(far, dispersion_sums(counts, expected, SHELL, 10), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-6)
