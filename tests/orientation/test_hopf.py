"""The Hopf grid and the HEALPix pixels below it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.healpix import pixel_centres
from orienteer.orientation.hopf import hopf, n_rotations
from orienteer.orientation.quaternion import mean, rotate


def ring_centres(n_side: int) -> np.ndarray:
    """Pixel centres ring by ring from the formulas of Górski et al. (2005), as unit vectors."""
    centres = []
    for ring in range(1, 4 * n_side):
        if ring < n_side:
            length, z, first = 4 * ring, 1 - ring**2 / (3 * n_side**2), 0.5
        elif ring <= 3 * n_side:
            length, z = 4 * n_side, 4 / 3 - 2 * ring / (3 * n_side)
            first = 0.5 if (ring - n_side) % 2 == 0 else 0.0
        else:
            south = 4 * n_side - ring
            length, z, first = 4 * south, -1 + south**2 / (3 * n_side**2), 0.5
        azimuth = (np.arange(length) + first) * 2 * np.pi / length
        radius = np.sqrt(1 - z * z)
        centres.append(
            np.column_stack([radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(length, z)])
        )
    return np.concatenate(centres)


def vectors(level: int) -> np.ndarray:
    polar, azimuth = pixel_centres(level, np.arange(12 * 4**level))
    return np.column_stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)])


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_nested_pixels_are_the_pixels_of_the_ring_formulas(level: int) -> None:
    ours, rings = vectors(level), ring_centres(2**level)
    assert len(ours) == len(rings)
    nearest = np.linalg.norm(ours[:, None] - rings, axis=-1)
    assert nearest.min(axis=1).max() < 1e-12
    assert nearest.min(axis=0).max() < 1e-12


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_four_children_of_a_pixel_surround_it(level: int) -> None:
    parents, children = vectors(level), vectors(level + 1).reshape(-1, 4, 3)
    middle = children.mean(axis=1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    pixel_width = np.sqrt(4 * np.pi / len(parents))
    assert np.linalg.norm(middle - parents, axis=1).max() < 0.3 * pixel_width
    assert np.array_equal((middle @ parents.T).argmax(axis=1), np.arange(len(parents)))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_level_has_72_times_a_power_of_8_rotations_of_equal_weight(level: int) -> None:
    grid = hopf(level)
    assert len(grid) == n_rotations(level) == 72 * 8**level
    assert len(np.unique(grid.quaternions.round(9), axis=0)) == len(grid)
    assert_allclose(grid.weights, 1 / len(grid), rtol=1e-12)


def test_a_pose_takes_the_particles_z_axis_to_its_pixel() -> None:
    grid = hopf(0)
    assert_allclose(rotate(grid.quaternions, [0, 0, 1]), np.repeat(vectors(0), 6, axis=0), atol=1e-12)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_eight_children_of_a_pose_are_contiguous_and_surround_it(level: int) -> None:
    grid = hopf(level)
    fine = grid.fine()
    assert list(grid.children(5)) == list(range(40, 48))
    families = fine.quaternions.reshape(len(grid), 8, 4)
    assert angular_distance_deg(families, grid.quaternions[:, None]).max() < 1.2 * grid.covering_radius_deg
    assert angular_distance_deg(mean(families), grid.quaternions).max() < 0.35 * grid.covering_radius_deg
    assert_allclose(fine.weights.reshape(-1, 8).sum(axis=1), grid.weights, rtol=1e-12)


@pytest.mark.parametrize("level", [-1, 7])
def test_an_impossible_level_is_refused(level: int) -> None:
    with pytest.raises(OrienteerError, match="no Hopf grid of level"):
        hopf(level)
