"""Super-Fibonacci grids: any number of poses, as even as published."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import random_uniform
from orienteer.orientation.super_fibonacci import _PSI, super_fibonacci


@pytest.mark.parametrize("n_poses", [1, 2, 7, 1000, 12_345])
def test_there_are_exactly_as_many_poses_as_asked_for(n_poses: int) -> None:
    grid = super_fibonacci(n_poses)
    assert len(grid) == n_poses == len(np.unique(grid.quaternions.round(9), axis=0))
    assert_allclose(np.linalg.norm(grid.quaternions, axis=1), 1, atol=1e-14)
    assert_allclose(grid.weights, 1 / n_poses, rtol=1e-12)


def test_the_constant_solves_its_equation() -> None:
    assert_allclose(_PSI**4, _PSI + 4, rtol=1e-15)


def test_the_poses_are_far_more_even_than_random_ones() -> None:
    grid = super_fibonacci(3240)
    random = random_uniform(3240, seed=1)
    dots = np.abs(random @ random.T)
    np.fill_diagonal(dots, 0)
    assert grid.closest_pair_deg > 5 * np.degrees(2 * np.arccos(min(1, dots.max())))
    assert_allclose(grid.closest_pair_deg, 10.4, rtol=0.03)


@pytest.mark.parametrize("n_poses", [0, -1, 10**9])
def test_an_impossible_number_is_refused(n_poses: int) -> None:
    with pytest.raises(OrienteerError, match="super-Fibonacci"):
        super_fibonacci(n_poses)
