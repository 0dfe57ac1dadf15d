"""Distances in a cube and in half of one, voxel by voxel."""

import itertools

import numpy as np
import pytest

from orienteer.compare.distances import centred_axis, distances, squared_distances


@pytest.mark.parametrize("n", [1, 4, 5])
def test_every_voxel_has_its_distance_from_the_voxel_in_the_middle(n: int) -> None:
    found, squares = distances(centred_axis(n, 0.3)), squared_distances(centred_axis(n))
    assert found.shape == squares.shape == (n, n, n)
    for place in itertools.product(range(n), repeat=3):
        steps = np.array(place) - n // 2
        assert found[place] == pytest.approx(0.3 * np.linalg.norm(steps))
        assert squares[place] == (steps**2).sum()


def test_the_third_axis_may_be_another() -> None:
    found = distances(np.array([0.0, 3.0]), np.array([0.0, 4.0, 6.0]))
    assert found.shape == (2, 2, 3)
    assert found[1, 0].tolist() == [3, 5, pytest.approx(45**0.5)]
