"""The sphere, against a sum over the points of a ball."""

import numpy as np

from orienteer.detector.square import square_detector
from orienteer.hits.rings import Rings
from orienteer.hits.sphere import sphere_intensity, sphere_profiles, sphere_sizes

DETECTOR = square_detector(32, pixel_size_m=0.002, distance_m=0.2)


def test_the_intensity_is_that_of_a_ball_of_many_points() -> None:
    step, diameter_A = 1.0, 60.0
    axis = np.arange(-30.5, 31, step)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    inside = x[x**2 + y**2 + z**2 < (diameter_A / 2) ** 2]
    q = np.linspace(0, 0.04, 30)
    amplitude = np.array([np.cos(2 * np.pi * inside * one).mean() for one in q])
    np.testing.assert_allclose(sphere_intensity(q, diameter_A), amplitude**2, atol=2e-3)


def test_the_first_minimum_lies_at_1_43_over_the_diameter() -> None:
    assert sphere_intensity(np.array([1.4303 / 80]), 80.0)[0] < 1e-6
    assert sphere_intensity(np.array([1e-7]), 80.0)[0] > 0.999999


def test_profiles_are_sums_over_the_pixels_of_rings() -> None:
    rings = Rings(DETECTOR, 2.0)
    profile = sphere_profiles(rings, np.array([90.0]))[0]
    pixels = rings.correction * sphere_intensity(rings.q_inv_A, 90.0)
    slow = np.array([pixels[rings.ring == r].sum() for r in range(rings.n)]) / pixels.sum()
    np.testing.assert_allclose(profile, slow, rtol=1e-12)


def test_sizes_reach_from_the_edge_of_the_detector_to_its_pixels() -> None:
    rings = Rings(DETECTOR, 2.0)
    spacing = 0.002 / 0.2 / 2.0
    sizes = sphere_sizes(rings.q_inv_A, spacing, 20)
    assert np.isclose(sizes[0] * rings.q_inv_A.max(), 1.43)
    assert np.isclose(sizes[-1] * spacing, 0.8)
