"""PoseGrid: children, neighbours, covering, and what it refuses."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from orienteer.errors import OrienteerError
from orienteer.orientation.covering import covering_radius_deg, hole_depths
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.grids import make_grid
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import compose, random_uniform

GRIDS = {
    "600-cell": make_grid("600-cell", 3),
    "600-cell I": make_grid("600-cell", 6, "I"),
    "600-cell O": make_grid("600-cell", 6, "O"),
    "600-cell D7": make_grid("600-cell", 4, "D7"),
    "hopf": make_grid("hopf", 1),
    "hopf C3": make_grid("hopf", 1, "C3"),
    "super-fibonacci": make_grid("super-fibonacci", 777),
}
every_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())


@every_grid
@given(seed=st.integers(0, 2**32 - 1), angle_deg=st.floats(0.1, 200))
@settings(max_examples=10, deadline=None)
def test_near_finds_what_a_search_through_all_poses_finds(
    grid: PoseGrid, seed: int, angle_deg: float
) -> None:
    q = random_uniform(1, seed)[0]
    distance_deg = angular_distance_deg(grid.quaternions, q, grid.point_group)
    assert np.array_equal(grid.near(q, angle_deg), np.flatnonzero(distance_deg <= angle_deg))
    pose, nearest_deg = grid.nearest(q)
    assert_allclose(nearest_deg, distance_deg.min(), atol=1e-9)
    assert_allclose(distance_deg[pose], distance_deg.min(), atol=1e-9)


@every_grid
def test_every_fine_pose_has_one_parent_and_lies_near_it(grid: PoseGrid) -> None:
    fine = grid.fine()
    ranges = [grid.children(k) for k in range(len(grid))]
    assert ranges[0].start == 0
    assert ranges[-1].stop == len(fine)
    assert all(a.stop == b.start for a, b in pairwise(ranges))
    assert min(map(len, ranges)) >= 1
    assert max(map(len, ranges)) <= 32  # one block of the block-sparse responsibilities
    parent = np.repeat(np.arange(len(grid)), np.diff(grid.child_start))
    # Without the group: a child is stored as the equivalent beside its parent.
    to_parent_deg = angular_distance_deg(fine.quaternions, grid.quaternions[parent])
    assert to_parent_deg.max() < 1.2 * grid.covering_radius_deg
    if grid.kind != "hopf":
        assert_allclose(to_parent_deg, grid.nearest(fine.quaternions)[1], atol=1e-4)
    assert_allclose(fine.weights.sum(), 1, atol=1e-12)
    assert 6 < len(fine) / len(grid) < 10


def test_a_fine_grid_holds_the_same_poses_as_one_made_directly() -> None:
    for coarse, direct in (
        (make_grid("600-cell", 3), make_grid("600-cell", 6)),
        (GRIDS["600-cell I"], make_grid("600-cell", 12, "I")),
    ):
        fine = coarse.fine()
        assert (len(fine), fine.kind, fine.level) == (len(direct), direct.kind, direct.level)
        pose, distance_deg = direct.nearest(fine.quaternions)
        assert distance_deg.max() < 1e-6
        assert np.array_equal(np.sort(pose), np.arange(len(direct)))
        assert_allclose(fine.log_weights, direct.log_weights[pose], rtol=1e-12)


def test_in_a_600_cell_grid_every_pose_is_its_own_child() -> None:
    grid = GRIDS["600-cell"]
    pose, distance_deg = grid.fine().nearest(grid.quaternions)
    assert distance_deg.max() < 1e-6
    assert all(pose[k] in grid.children(k) for k in range(len(grid)))


def test_grandchildren_are_contiguous_too() -> None:
    grid = make_grid("600-cell", 1)
    children = grid.children(7)
    grandchildren = [g for c in children for g in grid.fine().children(c)]
    assert grandchildren == list(range(grandchildren[0], grandchildren[-1] + 1))


# Covering, rms distance to the nearest pose and closest pair in degrees, as measured independently with
# random probes.  Those miss the very bottom of the deepest hole, so the exact radius is a little more.
@pytest.mark.parametrize(
    ("kind", "level", "n_poses", "covering_deg", "rms_deg", "closest_deg"),
    [
        ("600-cell", 4, 3_240, 13.1, 8.1, 17.5),
        ("super-fibonacci", 3_240, 3_240, 14.4, 8.7, 10.4),
        ("hopf", 2, 4_608, 12.4, 7.3, 12.7),
        ("600-cell", 8, 25_680, 6.5, 4.1, 8.6),
        ("super-fibonacci", 25_680, 25_680, 7.1, 4.3, 4.6),
    ],
)
def test_grids_are_as_even_as_the_known_table_says(
    kind: str, level: int, n_poses: int, covering_deg: float, rms_deg: float, closest_deg: float
) -> None:
    grid = make_grid(kind, level)
    assert len(grid) == n_poses
    _, probed_deg = grid.nearest(random_uniform(20_000, seed=1))
    assert_allclose(probed_deg.max(), covering_deg, rtol=0.05)
    assert_allclose(np.sqrt(np.mean(probed_deg**2)), rms_deg, rtol=0.02)
    assert_allclose(grid.closest_pair_deg, closest_deg, rtol=0.04)
    assert probed_deg.max() <= grid.covering_radius_deg < 1.15 * covering_deg


@every_grid
def test_the_covering_radius_is_reached_and_never_passed(grid: PoseGrid) -> None:
    centres, depths = hole_depths(grid.equivalents)
    _, at_deepest_deg = grid.nearest(centres[depths.argmax()])
    assert_allclose(at_deepest_deg, grid.covering_radius_deg, rtol=1e-6)
    assert grid.nearest(random_uniform(5_000, seed=2))[1].max() <= grid.covering_radius_deg


def test_probing_a_large_grid_finds_nearly_the_deepest_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = make_grid("super-fibonacci", 6_000)
    exact_deg = covering_radius_deg(grid)
    monkeypatch.setattr("orienteer.orientation.covering._EXACT_UP_TO", 0)
    assert 0.97 * exact_deg < covering_radius_deg(grid) <= exact_deg * (1 + 1e-9)


def test_tiny_grids_have_a_covering_radius_and_a_closest_pair() -> None:
    single = make_grid("super-fibonacci", 1)
    assert 175 < single.covering_radius_deg <= 180
    assert single.closest_pair_deg == 180
    assert make_grid("600-cell", 1, "I").covering_radius_deg == pytest.approx(44.4775, abs=1e-3)


def test_closest_pair_is_that_of_a_search_through_all_pairs() -> None:
    for grid in GRIDS.values():
        distance_deg = angular_distance_deg(grid.quaternions[:, None], grid.quaternions, grid.point_group)
        np.fill_diagonal(distance_deg, np.inf)
        assert_allclose(grid.closest_pair_deg, distance_deg.min(), atol=1e-6)


def test_a_grid_is_read_only_and_travels_between_processes() -> None:
    grid = GRIDS["600-cell O"]
    with pytest.raises(ValueError, match="read-only"):
        grid.quaternions[0, 0] = 0
    copy = pickle.loads(pickle.dumps(grid))
    assert np.array_equal(copy.quaternions, grid.quaternions)
    assert np.array_equal(copy.child_start, grid.child_start)
    assert repr(copy) == "PoseGrid(600-cell, level 6, O, 433 poses)"


def test_making_a_grid_leaves_the_callers_arrays_writable() -> None:
    q, log_weights = random_uniform(4, seed=1), np.log(np.full(4, 0.25))
    PoseGrid(q, log_weights, "mine", 0, finer=lambda: None)  # type: ignore[arg-type, return-value]
    q[0] = 0
    log_weights[0] = 0


@pytest.mark.parametrize(
    ("q", "log_weights", "words"),
    [
        (np.eye(4), np.zeros(3), "log_weights"),
        (np.eye(4)[:0], np.zeros(0), "at least 1"),
        (np.eye(4), np.zeros(4), "sum to 4"),
        (2 * np.eye(4), np.log(np.full(4, 0.25)), "length 1"),
        (np.eye(4) * np.nan, np.log(np.full(4, 0.25)), "length 1"),
        (np.eye(3), np.log(np.full(3, 1 / 3)), r"\(\.\.\., 4\)"),
    ],
)
def test_arrays_that_are_no_grid_are_refused(q: np.ndarray, log_weights: np.ndarray, words: str) -> None:
    with pytest.raises(OrienteerError, match=words):
        PoseGrid(q, log_weights, "mine", 0, finer=lambda: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("q", [[1, 0, 0], [np.nan, 0, 0, 1], [0, 0, 0, 0]])
def test_neighbours_of_what_is_no_orientation_are_refused(q: list[float]) -> None:
    for search in (lambda: GRIDS["hopf"].near(q, 10), lambda: GRIDS["hopf"].nearest(q)):
        with pytest.raises(OrienteerError, match="quaternion"):
            search()


@pytest.mark.parametrize("k", [-1, 1380])
def test_a_pose_that_does_not_exist_has_no_children(k: int) -> None:
    with pytest.raises(OrienteerError, match="no pose"):
        GRIDS["600-cell"].children(k)


def test_a_turned_grid_is_the_same_grid_elsewhere() -> None:
    grid, turn = make_grid("600-cell", 2), random_uniform(1, 3)[0]
    turned = pickle.loads(pickle.dumps(grid.turned(turn)))
    assert_allclose(turned.quaternions, compose(grid.quaternions, turn), atol=1e-15)
    assert_array_equal(turned.log_weights, grid.log_weights)
    assert_array_equal(turned.child_start, grid.child_start)
    assert_allclose(turned.fine().quaternions, compose(grid.fine().quaternions, turn), atol=1e-15)


def test_a_grid_that_a_symmetry_has_reduced_is_not_turned() -> None:
    with pytest.raises(OrienteerError, match="reduced by C4 cannot be turned"):
        make_grid("600-cell", 2, "C4").turned([1, 0, 0, 0])
