"""Small turns, shifts and changes of size are found together."""

import numpy as np
import pytest

from orienteer.compare.moving import MovableDensity, move_density
from orienteer.compare.refinement import Placement, Refinement
from orienteer.compare.structure_density import density_of
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import compose, from_axis_angle, random_uniform
from orienteer.particle.structure import blobs

VOXEL_A = 2.0
BODY = blobs([[0, 0, 0], [14, 3, 0], [-3, 12, 6], [-8, -9, 10]], [1, 0.9, 1.1, 0.8], [1.5, 2, 2.5, 3])


def test_refinement_finds_small_turns_shifts_and_a_wrong_size_together() -> None:
    n = 33
    turn, shift = from_axis_angle([1, 2, 3], 4.0), np.array([0.4, -0.3, 0.6])
    truth = compose(turn, random_uniform(1, 2)[0])
    start = Placement(random_uniform(1, 2)[0], np.zeros(3), 1)
    density = density_of(BODY, n, VOXEL_A).values
    reference = move_density(density, truth, shift, 1)
    found = Refinement(reference).refine(MovableDensity(density), start)
    assert angular_distance_deg(found.quaternion, truth) < 0.02
    np.testing.assert_allclose(found.shift, shift, atol=0.01)
    assert found.correlation > 0.999
    larger = density_of(BODY, n, VOXEL_A * 0.97).values  # the same particle in smaller voxels
    found = Refinement(reference).refine(MovableDensity(larger), start, scale_too=True)
    assert found.scale == pytest.approx(0.97, abs=0.005)
    assert angular_distance_deg(found.quaternion, truth) < 0.3


def test_a_ball_has_no_turn_to_find() -> None:
    ball = density_of(blobs([[0, 0, 0]], [1], 6), 24, VOXEL_A).values
    start = Placement(random_uniform(1, 2)[0], np.array([0.5, 0, 0]), 1)
    found = Refinement(ball).refine(MovableDensity(ball), start)
    np.testing.assert_allclose(found.shift, 0, atol=0.01)
    assert np.isfinite(found.quaternion).all()


def test_voxels_outside_of_the_mask_do_not_count() -> None:
    n = 33
    density = density_of(BODY, n, VOXEL_A).values
    x, y, z = np.indices((n, n, n)) - n // 2
    mask = (x**2 + y**2 + z**2 < 10**2).astype(np.float32)
    spoilt = density + density.max() * np.exp(-((x - 14) ** 2 + y**2 + z**2) / 2)
    start = Placement(from_axis_angle([1, 0, 2], 3.0), np.array([0.3, 0.2, -0.4]), 1)
    found = Refinement(spoilt, mask).refine(MovableDensity(density), start)
    plain = Refinement(spoilt).refine(MovableDensity(density), start)
    assert found.correlation > 0.99 > plain.correlation
    np.testing.assert_allclose(found.shift, 0, atol=0.02)
