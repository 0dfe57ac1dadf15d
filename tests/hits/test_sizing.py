"""Sizes and brightness of spheres that are known, and one fit against a general optimiser."""

import numpy as np
from scipy.optimize import minimize

from orienteer.detector.square import square_detector
from orienteer.hits.rings import Rings
from orienteer.hits.sizing import BACKGROUND_SPREAD, SphereSizing
from orienteer.hits.sphere import sphere_profiles

DETECTOR = square_detector(64, pixel_size_m=0.00125, distance_m=0.2)
RINGS = Rings(DETECTOR, 2.7)
SIZING = SphereSizing(RINGS, 0.00125 / 0.2 / 2.7)
FLAT = RINGS.sums(np.ones(len(RINGS.pixels))) * 500 / len(RINGS.pixels)


def test_expected_photons_give_back_size_and_brightness() -> None:
    sizes = np.array([50.0, 101.0, 163.0, 240.0])
    photons = 2000 * sphere_profiles(RINGS, sizes) + 1.1 * FLAT
    found = SIZING.fit(photons.astype(np.float32), FLAT)
    np.testing.assert_allclose(found.size_A, sizes, rtol=0.01)
    np.testing.assert_allclose(found.brightness, 2000, rtol=0.03)
    np.testing.assert_allclose(found.background, 1.1, rtol=0.05)


def test_counted_photons_give_sizes_without_bias_and_a_quality_near_one() -> None:
    draw = np.random.default_rng(2)
    photons = draw.poisson(500 * sphere_profiles(RINGS, np.array([150.0])) + FLAT, (300, RINGS.n))
    found = SIZING.fit(photons.astype(np.float32), FLAT)
    assert abs(np.median(found.size_A) - 150) < 1.5
    assert found.size_A.std() < 10
    assert abs(found.brightness.mean() - 500) < 10
    assert 0.7 < np.median(found.fit_quality) < 1.4


def test_something_that_is_no_sphere_fits_worse() -> None:
    draw = np.random.default_rng(3)
    mixed = sphere_profiles(RINGS, np.array([60.0, 250.0])).mean(axis=0)
    photons = draw.poisson(3000 * mixed + FLAT, (50, RINGS.n)).astype(np.float32)
    assert np.median(SIZING.fit(photons, FLAT).fit_quality) < 0.5


def test_brightness_is_the_maximum_that_a_general_optimiser_finds() -> None:
    draw = np.random.default_rng(4)
    photons = draw.poisson(300 * sphere_profiles(RINGS, np.array([120.0]))[0] + FLAT)
    found = SIZING.fit(photons[None].astype(np.float32), FLAT)

    def misfit(x: np.ndarray, profile: np.ndarray) -> tuple[float, np.ndarray]:
        expected = x[0] * profile + x[1] * FLAT
        beside = (x[1] - 1) / BACKGROUND_SPREAD**2
        value = (expected - photons * np.log(expected)).sum() + (x[1] - 1) * beside / 2
        slope = np.stack([profile, FLAT]) @ (1 - photons / expected) + np.array([0, beside])
        return float(value), slope

    results = [
        minimize(misfit, [200.0, 1.0], (profile,), jac=True, bounds=[(1, None), (0.1, None)])
        for profile in SIZING.profiles
    ]
    best = min(results, key=lambda result: float(result.fun))
    np.testing.assert_allclose(found.brightness[0], best.x[0], rtol=5e-3)
    np.testing.assert_allclose(found.background[0], best.x[1], rtol=5e-3)
    nearest = SIZING.diameters_A[int(np.argmin([result.fun for result in results]))]
    assert abs(np.log(found.size_A[0] / nearest)) < np.log(SIZING.diameters_A[1] / SIZING.diameters_A[0])


def test_a_frame_without_a_photon_is_no_bright_sphere() -> None:
    found = SIZING.fit(np.zeros((1, RINGS.n), np.float32), np.zeros(RINGS.n))
    assert found.brightness[0] < 1
    assert np.isfinite(found.size_A[0])
