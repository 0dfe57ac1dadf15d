"""The extent of a particle from its mean pattern."""

import numpy as np
import pytest

from orienteer.reconstruction.model.pair_distances import diameter_from_profile

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


def size_A(length: np.ndarray, frames: np.ndarray, correction: float | np.ndarray = 1.0) -> float:
    sensitivity = np.broadcast_to(correction, length.shape)
    return diameter_from_profile(length, frames, np.ones(len(frames)), sensitivity, SPACING)


def drawn(pattern: np.ndarray, photons: float) -> np.ndarray:
    """50 frames with so many photons altogether."""
    return np.random.default_rng(1).poisson(pattern * photons / 50 / pattern.sum(), size=(50, len(pattern)))


@pytest.mark.parametrize("photons", [1e5, 1e9])
@pytest.mark.parametrize("diameter_A", [150.0, 300.0])
def test_the_extent_of_a_ball_is_found(diameter_A: float, photons: float) -> None:
    length = pixels()
    found = size_A(length, drawn(ball(length, diameter_A), photons))
    assert diameter_A < found < 1.35 * diameter_A  # of all shapes it has most of its pairs far apart


def test_a_flat_background_is_no_size() -> None:
    length = pixels()
    sizes = [size_A(length, drawn(ball(length, 250.0) + level, 1e8)) for level in (0.0, 1e-4)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_the_sensitivity_of_pixels_is_no_size() -> None:
    length = pixels()
    correction = 1 / (1 + (20 * length) ** 2) ** 2
    sizes = [size_A(length, drawn(ball(length, 250.0) * c, 1e8), c) for c in (1.0, correction)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


def test_nothing_is_said_about_dark_frames() -> None:
    length = pixels()
    assert size_A(length, np.zeros((50, len(length)))) == 0


def test_a_background_that_is_known_is_as_if_it_had_been_taken_off() -> None:
    length = pixels()
    frames, behind = drawn(ball(length, 250.0), 1e8), np.linspace(0.0, 3.0, len(length))
    given = np.ones(len(frames)), np.ones(len(length)), SPACING
    taken_off = diameter_from_profile(length, frames - behind, *given)
    assert diameter_from_profile(length, frames, *given, behind) == pytest.approx(taken_off, rel=1e-9)
