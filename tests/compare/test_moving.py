"""A moved density is the density of the moved particle."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.compare.fsc import within_shells
from orienteer.compare.moving import MovableDensity, _points_on_gpu, cube_points, move_density
from orienteer.compare.structure_density import density_of
from orienteer.compute.arrays import import_cupy
from orienteer.orientation.quaternion import from_axis_angle, identity, random_uniform
from orienteer.particle.structure import blobs

VOXEL_A = 2.0
# Widths near the voxel: there is detail up to the edge of the transform.
BODY = blobs([[0, 0, 0], [14, 3, 0], [-3, 12, 6], [-8, -9, 10]], [1, 0.9, 1.1, 0.8], [1.5, 2, 2.5, 3])


@pytest.mark.parametrize("n", [32, 33])
@pytest.mark.parametrize("hand", [1, -1])
def test_moving_the_density_is_moving_the_particle(n: int, hand: int) -> None:
    turn, shift = random_uniform(1, 5)[0], np.array([1.3, -0.7, 2.1])
    body = replace(BODY, positions_A=hand * BODY.positions_A).rotated(turn).translated(VOXEL_A * shift)
    wanted = density_of(body, n, VOXEL_A).values
    start = density_of(BODY, n, VOXEL_A).values
    exact = move_density(start, turn, shift, hand)
    quick = MovableDensity(start).moved(turn, shift, hand)
    inside = np.linalg.norm(np.indices((n, n, n)) - n // 2, axis=0) < 13
    # What a sharp band limit spreads over the box is cut off where the box ends; hence not better.
    assert abs(exact - wanted)[inside].max() < 0.01 * wanted.max()
    assert abs(quick - exact).max() < 0.01 * wanted.max()


def test_a_quarter_turn_is_exact() -> None:
    values = within_shells(np.random.default_rng(1).normal(size=(9, 9, 9)))
    found = move_density(values, from_axis_angle([0, 0, 1], 90), np.zeros(3), 1)
    np.testing.assert_allclose(found, np.rot90(values, 1, (0, 1)), atol=1e-6)
    flipped = move_density(values, identity(), np.array([1.0, 0, 0]), -1)
    np.testing.assert_allclose(flipped[1:], values[::-1, ::-1, ::-1][:-1], atol=1e-6)
    assert not flipped[0].any()


@pytest.mark.gpu
def test_the_gpu_moves_alike() -> None:
    cupy = import_cupy()
    assert cupy is not None
    values = density_of(BODY, 24, VOXEL_A).values
    turn, shift = random_uniform(1, 5)[0], np.array([1.3, -0.7, 2.1])
    found = move_density(cupy.asarray(values), turn, shift, -1)
    assert abs(found.get() - move_density(values, turn, shift, -1)).max() < 0.01 * values.max()


@pytest.mark.parametrize("n", [5, 8, 11])
def test_points_that_are_made_on_the_gpu_are_the_voxels_of_the_cube(n: int) -> None:
    parts = [_points_on_gpu(n, first, last, np) for first, last in ((0, 50), (50, n**3))]
    np.testing.assert_array_equal(np.concatenate(parts), cube_points(n))
