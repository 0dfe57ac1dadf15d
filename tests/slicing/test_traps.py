"""Mistakes that the field has made before: the sense of a rotation, and dividing too early."""

import numpy as np

from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.slicing.trilinear import insert_slices, slice_volume

ATOMS = np.array([[0.31, 0.05, -0.12], [-0.2, 0.35, 0.1], [0.02, -0.3, 0.4]])  # about one long, no symmetry
ELECTRONS = np.array([1.0, 2.0, 3.5])
N, VOXEL = 129, 0.012


def intensity(q, atoms):
    """|F|^2 at q (..., 3) of three atoms."""
    return np.abs(np.exp(2j * np.pi * q @ atoms.T) @ ELECTRONS) ** 2


def axis_grid():
    axis = (np.arange(N) - N // 2) * VOXEL
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)


def cap():
    """Points in voxels on an Ewald cap that stays inside the cube."""
    side = np.arange(-40, 41, 2.0)
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    return np.stack([x, y, np.sqrt(100**2 - x**2 - y**2) - 100], axis=1)


def test_a_slice_shows_the_particle_turned_by_its_rotation() -> None:
    volume = intensity(axis_grid(), ATOMS).astype(np.float32)
    points = cap()
    rotations = to_matrix(random_uniform(20, seed=4))
    turned = np.array([intensity(points * VOXEL, ATOMS @ R.T) for R in rotations])
    slices = slice_volume(volume, points.astype(np.float32), np.swapaxes(rotations, 1, 2))
    assert np.abs(slices - turned).max() < 1e-3 * volume.max()
    # The other sense would not have passed.
    wrong = slice_volume(volume, points.astype(np.float32), rotations)
    assert np.abs(wrong - turned).max() > 0.1 * volume.max()


def test_slices_put_back_at_their_orientations_give_the_volume_again() -> None:
    volume = intensity(axis_grid(), ATOMS).astype(np.float32)
    points = cap().astype(np.float32)
    matrices = np.swapaxes(to_matrix(random_uniform(400, seed=5)), 1, 2)
    slices = slice_volume(volume, points, matrices)
    sums = np.zeros((N, N, N, 2))
    insert_slices(sums, points, matrices, slices, np.ones(400), np.ones(len(points)))
    seen = sums[..., 1] > 0.5
    assert seen.sum() > 100_000
    merged = sums[seen, 0] / sums[seen, 1]
    error = np.abs(merged - volume[seen])
    assert np.sqrt(np.mean(error**2)) < 5e-3 * volume.max()


def test_a_flat_volume_is_a_fixed_point() -> None:
    volume = np.full((17, 17, 17), 3.25, np.float32)
    points = np.random.default_rng(1).uniform(-4, 4, (200, 3)).astype(np.float32)
    matrices = to_matrix(random_uniform(30, seed=6))
    row_weights = np.random.default_rng(2).random(30)
    slices = slice_volume(volume, points, matrices) * row_weights[:, None]
    sums = np.zeros((17, 17, 17, 2))
    insert_slices(sums, points, matrices, slices, row_weights, np.ones(200))
    seen = sums[..., 1] > 1e-3
    np.testing.assert_allclose(sums[seen, 0] / sums[seen, 1], 3.25, rtol=1e-5)


def test_rows_count_by_their_weight_and_not_one_each() -> None:
    """Division waits for the sums: 3 rows of weight 1, 2, 5 at one voxel give the weighted mean."""
    points = np.zeros((1, 3), np.float32)
    matrices = np.broadcast_to(np.eye(3), (3, 3, 3))
    row_weights, row_means = np.array([1.0, 2.0, 5.0]), np.array([10.0, 20.0, 40.0])
    sums = np.zeros((5, 5, 5, 2))
    insert_slices(sums, points, matrices, (row_weights * row_means)[:, None], row_weights, np.ones(1))
    np.testing.assert_allclose(sums[2, 2, 2], [250, 8])
    assert sums.sum() == 258
