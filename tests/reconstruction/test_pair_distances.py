"""The extent of a particle from its mean pattern."""

import numpy as np
import pytest

from orienteer.reconstruction.pair_distances import diameter_from_profile

SPACING = 1 / 1000  # of pixels in 1/A: 3.3 across a speckle of 300 A


def ball(length: np.ndarray, diameter_A: float) -> np.ndarray:
    """|F|^2 of a ball, 1 in the centre."""
    x = np.pi * diameter_A * np.maximum(length, 1e-12)
    return (3 * (np.sin(x) - x * np.cos(x)) / x**3) ** 2


def pixels(hole: float = 0.0) -> np.ndarray:
    """Distances of the pixels of a square from its middle, in 1/A."""
    axis = (np.arange(64) - 31.5) * SPACING
    length = np.hypot(*np.meshgrid(axis, axis)).ravel()
    return length[length > hole]


@pytest.mark.parametrize("photons", [1e5, 1e9])
@pytest.mark.parametrize("diameter_A", [150.0, 300.0])
def test_the_extent_of_a_ball_is_found(diameter_A: float, photons: float) -> None:
    length = pixels()
    pattern = ball(length, diameter_A)
    counts = np.random.default_rng(1).poisson(pattern * photons / pattern.sum())
    found = diameter_from_profile(length, counts, counts, np.ones(len(length)), SPACING)
    assert diameter_A < found < 1.3 * diameter_A  # of all shapes it has most of its pairs far apart


def test_a_flat_background_is_no_size() -> None:
    length = pixels()
    clean, flat = (ball(length, 250.0) * 1e5 + level for level in (0.0, 50.0))
    ones = np.ones(len(length))
    sizes = [diameter_from_profile(length, x, x, ones, SPACING) for x in (clean, flat)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_the_sensitivity_of_pixels_is_no_size() -> None:
    length = pixels()
    correction = 1 / (1 + (20 * length) ** 2) ** 2
    photons = ball(length, 250.0) * 1e5
    sizes = [
        diameter_from_profile(length, photons * c, photons * c, c, SPACING)
        for c in (np.ones(len(length)), correction)
    ]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


def test_nothing_is_said_where_the_centre_is_hidden_or_dark() -> None:
    length = pixels(hole=1 / 200)
    ones, photons = np.ones(len(length)), ball(length, 300.0) * 1e5
    assert diameter_from_profile(length, photons, photons, ones, SPACING) == 0
    assert diameter_from_profile(length, 0 * ones, 0 * ones, ones, SPACING) == 0
