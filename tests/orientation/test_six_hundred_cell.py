"""The 600-cell grid: its numbers, its symmetry, its nesting and its weights."""

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import canonical, compose
from orienteer.orientation.six_hundred_cell import (
    _SHARE,
    _simplices,
    covering_bound_deg,
    n_rotations,
    six_hundred_cell,
)


def test_the_body_has_the_known_numbers_of_parts() -> None:
    assert [len(simplices) for simplices in _simplices()] == [120, 720, 1200, 600]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_the_shares_of_the_points_add_up_to_the_flat_volume_of_the_body(n: int) -> None:
    n_elements = {1: 120, 2: 720, 3: 1200, 4: 600}
    volume = sum(n_elements[m] * comb(n - 1, m - 1) * _SHARE[m] for m in n_elements)
    assert_allclose(volume, 600 * n**3 / 6, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8, 10])
def test_there_are_exactly_10_times_5_n_cubed_plus_n_rotations(n: int) -> None:
    grid = six_hundred_cell(n)
    assert len(grid) == n_rotations(n) == 10 * (5 * n**3 + n)
    assert len(np.unique(grid.quaternions.round(9), axis=0)) == len(grid)
    assert_allclose(np.linalg.norm(grid.quaternions, axis=1), 1, atol=1e-14)
    assert np.array_equal(grid.quaternions, canonical(grid.quaternions))
    assert_allclose(grid.weights.sum(), 1, atol=1e-12)
    assert n == 1 or 1.4 < grid.weights.max() / grid.weights.min() < 1.64


def test_weights_are_the_volumes_that_the_poses_stand_for() -> None:
    """Bumps around the 60 vertices, where the poses are crowded, integrate with an error of order 1 / n^2."""

    def bump(angle_deg: np.ndarray) -> np.ndarray:
        return np.cos(np.radians(angle_deg) * 2.5) ** 4  # falls to 0 at 36 degrees, where the bumps touch

    angle_deg = np.linspace(0, 36, 20_001)
    density = (1 - np.cos(np.radians(angle_deg))) / np.pi  # of uniform rotations over their angle
    exact = 60 * np.trapezoid(bump(angle_deg) * density, np.radians(angle_deg))
    error = {}
    for n in (10, 20):
        grid = six_hundred_cell(n)
        distance_deg = six_hundred_cell(1).nearest(grid.quaternions)[1]
        values = np.where(distance_deg < 36, bump(distance_deg), 0)
        error[n] = abs(grid.weights @ values / exact - 1)
        assert values.mean() / exact - 1 > 0.05  # equal weights count too much there
    assert error[10] < 0.01
    assert error[20] < error[10] / 3


@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_icosahedral_group_maps_grid_and_weights_onto_themselves(n: int) -> None:
    grid = six_hundred_cell(n)
    element = PointGroup("I").quaternions[[3, 17, 44]][:, None]
    for turned in (compose(grid.quaternions, element), compose(element, grid.quaternions)):
        pose, distance_deg = grid.nearest(turned)
        assert distance_deg.max() < 1e-6
        assert_allclose(grid.weights[pose], np.broadcast_to(grid.weights, pose.shape), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_grid_lies_inside_the_grid_with_twice_the_divisions(n: int) -> None:
    _, distance_deg = six_hundred_cell(2 * n).nearest(six_hundred_cell(n).quaternions)
    assert distance_deg.max() < 1e-6


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_covering_bound_holds(n: int) -> None:
    exact_deg = six_hundred_cell(n).covering_radius_deg
    assert 0.8 * covering_bound_deg(n) < exact_deg < covering_bound_deg(n)


@pytest.mark.parametrize("n", [0, -3, 101])
def test_an_impossible_division_is_refused(n: int) -> None:
    with pytest.raises(OrienteerError, match="cannot be divided"):
        six_hundred_cell(n)
