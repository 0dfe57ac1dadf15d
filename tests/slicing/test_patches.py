"""Patches: every point once, few and small balls, and points that are no numbers do no harm."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.slicing.patches import PATCH, PointPatches


@pytest.mark.parametrize("n_points", [0, 1, PATCH, PATCH + 1, 1000])
def test_every_point_comes_once_and_lies_in_the_ball_of_its_patch(n_points) -> None:
    points = np.random.default_rng(1).normal(size=(n_points, 3)).astype(np.float32)
    patches = PointPatches.of(points)
    assert len(patches) == n_points
    np.testing.assert_array_equal(np.sort(patches.order), np.arange(n_points))
    np.testing.assert_array_equal(patches.coordinates.T, points[patches.order])
    np.testing.assert_array_equal(patches.given.T, points)
    assert len(patches.radii) == -(-n_points // PATCH)
    patch = np.arange(n_points) // PATCH
    away = np.linalg.norm(points[patches.order] - patches.centres[patch], axis=1)
    assert np.all(away <= patches.radii[patch] * 1.0001)


def test_patches_of_a_detector_are_compact_in_any_order_of_its_pixels() -> None:
    side = np.arange(80)
    x, y = (a.ravel() for a in np.meshgrid(side, side))
    points = np.stack([x, y, 0 * x], axis=1)[np.random.default_rng(2).permutation(6400)]
    radii = PointPatches.of(points).radii
    assert np.mean(radii) < 7  # half the diagonal of 8 x 8 pixels is 5
    assert np.max(radii) < 14


def test_a_point_that_is_no_number_makes_its_ball_endless_and_no_other() -> None:
    points = np.random.default_rng(3).normal(size=(3 * PATCH, 3))
    points[5, 1] = np.nan
    points[9, 2] = np.inf
    radii = PointPatches.of(points).radii
    assert 1 <= np.count_nonzero(np.isinf(radii)) <= 2
    assert not np.any(np.isnan(radii))


def test_points_left_as_given_get_balls_when_they_are_needed() -> None:
    points = np.random.default_rng(4).normal(size=(200, 3)).astype(np.float32)
    left = PointPatches.as_given(points)
    assert len(left.radii) == 0
    np.testing.assert_array_equal(left.with_balls().order, PointPatches.of(points).order)
    sorted_points = PointPatches.of(points)
    assert sorted_points.with_balls() is sorted_points


def test_points_in_a_plane_are_refused() -> None:
    with pytest.raises(OrienteerError, match="points"):
        PointPatches.of(np.zeros((4, 2)))
