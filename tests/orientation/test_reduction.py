"""Reduced grids hold every orientation once, and integrate like full ones."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.grids import make_grid
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import compose, identity, inverse, random_uniform, to_matrix

grid_of = cache(make_grid)  # so that trees and covering radii are made once
ALL_GROUPS = ["C2", "C3", "C7", "D2", "D5", "D7", "T", "O", "I"]
SHIFTS = random_uniform(3, seed=1)


def character(degree: int, quaternions: np.ndarray) -> np.ndarray:
    """Trace of the Wigner matrix D^l over 2 l + 1: at most 1, and 0 in the mean over all rotations."""
    half_angle = np.arccos(np.clip(np.abs(quaternions[..., 0]), 0, 1))
    return np.mean([np.cos(2 * half_angle * order) for order in range(-degree, degree + 1)], axis=0)


def mean_character(grid: PoseGrid, degree: int, shift: np.ndarray, group: str = "C1") -> float:
    """The grid's mean of a character of R0^-1 R, averaged over the equivalents R S: a symmetric function."""
    moved = compose(compose(inverse(shift), grid.quaternions)[:, None], PointGroup(group).quaternions)
    return float(grid.weights @ character(degree, moved).mean(axis=-1))


@pytest.mark.parametrize(
    ("kind", "level", "tolerance"),
    [("600-cell", 3, 1e-3), ("600-cell", 8, 7e-5), ("hopf", 2, 5e-4), ("super-fibonacci", 3240, 5e-4)],
)
def test_characters_integrate_to_zero(kind: str, level: int, tolerance: float) -> None:
    grid = make_grid(kind, level)
    errors = [abs(mean_character(grid, degree, shift)) for degree in (1, 2, 3, 6, 12) for shift in SHIFTS]
    assert max(errors) < tolerance


@pytest.mark.parametrize("n", [1, 3, 4])
def test_the_600_cell_integrates_low_degrees_exactly(n: int) -> None:
    """Its symmetry leaves no invariant of degree 1 to 5, so the moments of R are those of all rotations."""
    grid = make_grid("600-cell", n)
    matrices = to_matrix(grid.quaternions).reshape(-1, 9)
    assert_allclose(grid.weights @ matrices, 0, atol=1e-14)
    assert_allclose(matrices.T @ (grid.weights[:, None] * matrices), np.eye(9) / 3, atol=1e-14)
    assert max(abs(mean_character(grid, degree, SHIFTS[0])) for degree in range(1, 6)) < 1e-14


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_icosahedral_reduction_is_exact_on_the_600_cell(n: int) -> None:
    full, reduced = make_grid("600-cell", n), make_grid("600-cell", n, "I")
    assert len(reduced) == n * (5 * n**2 + 1) // 6 == len(full) // 60
    pose, distance_deg = reduced.nearest(full.quaternions)
    assert distance_deg.max() < 1e-6
    assert np.all(np.bincount(pose) == 60)
    assert_allclose(reduced.weights[pose], 60 * full.weights, rtol=1e-12)


@pytest.mark.parametrize(("group", "order"), [("C2", 2), ("D2", 4), ("T", 12)])
def test_subgroups_of_the_icosahedral_one_reduce_exactly_too(group: str, order: int) -> None:
    full = grid_of("600-cell", 4)
    reduced = full.reduced(group)
    assert len(reduced) * order == len(full)
    assert_allclose(reduced.weights[reduced.nearest(full.quaternions)[0]], order * full.weights, rtol=1e-12)


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize(("kind", "level"), [("600-cell", 5), ("hopf", 2), ("super-fibonacci", 5_000)])
def test_a_reduced_grid_covers_everything_once(kind: str, level: int, group: str) -> None:
    full = grid_of(kind, level)
    reduced = full.reduced(group)
    order = reduced.point_group.order
    assert_allclose(reduced.weights.sum(), 1, atol=1e-12)
    assert_allclose(len(reduced), len(full) / order, rtol=0.09)
    # No two poses are equivalents of each other, and none could be replaced by one closer to the identity.
    assert reduced.closest_pair_deg > 1e-3
    own_deg = angular_distance_deg(reduced.quaternions, identity())
    assert_allclose(own_deg, angular_distance_deg(reduced.quaternions, identity(), group), atol=1e-5)
    # Where the zone cuts the grid the holes are wider, but by less than a half.
    probed_deg = reduced.nearest(random_uniform(2_000, seed=2))[1]
    assert probed_deg.max() < 1.5 * full.covering_radius_deg


@pytest.mark.parametrize("group", ALL_GROUPS)
@pytest.mark.parametrize(("kind", "level"), [("600-cell", 5), ("hopf", 2), ("super-fibonacci", 5_000)])
def test_a_symmetric_function_integrates_alike_on_reduced_and_full_grids(
    kind: str, level: int, group: str
) -> None:
    """Functions of size 1: to 0.4 % where the zone cuts the grid, to rounding where the group maps it."""
    full = grid_of(kind, level)
    reduced = full.reduced(group)
    tolerance = 1e-13 if kind == "600-cell" and group in ("C2", "D2", "T", "I") else 4e-3
    for degree in (2, 6):
        for shift in SHIFTS[:2]:
            on_reduced = mean_character(reduced, degree, shift, group)
            assert abs(on_reduced - mean_character(full, degree, shift, group)) < tolerance


def test_a_reduced_grid_is_not_reduced_again() -> None:
    grid = make_grid("600-cell", 2, "T")
    assert grid.reduced("T") is grid
    with pytest.raises(OrienteerError, match="reduced by T cannot be reduced again by I"):
        grid.reduced("I")


def test_reduction_by_no_symmetry_changes_nothing() -> None:
    grid = make_grid("hopf", 0)
    assert grid.reduced("C1") is grid
