"""The mean of a posterior lies between the points of the grid."""

import tracemalloc

import numpy as np
import pytest

from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.grids import make_grid
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import compose, from_axis_angle, random_uniform
from orienteer.posterior.responsibilities import Responsibilities
from orienteer.reconstruction.orienting import mean_pose
from orienteer.reconstruction.orienting.mean_pose import likeliest, mean_poses


@pytest.mark.parametrize("name", ["C1", "C4"])
def test_the_mean_pose_lies_between_the_poses_of_the_grid(name: str) -> None:
    group, grid = as_point_group(name), make_grid("600-cell", 6, name)
    truth = random_uniform(40, 1)
    apart = angular_distance_deg(truth[:, None], grid.quaternions[None], group)
    probability = np.exp(-0.5 * (apart / 6.0) ** 2) * np.exp(grid.log_weights)
    probability /= probability.sum(axis=1, keepdims=True)
    best = grid.quaternions[probability.argmax(axis=1)]
    rows = np.tile(np.arange(len(grid)), 40)
    kept = Responsibilities(
        len(grid), np.arange(41) * len(grid), rows.astype(np.int32), probability.ravel().astype(np.float32)
    )
    found = mean_poses(kept, grid.quaternions, best, group, reach_deg=25.0)
    error = angular_distance_deg(found, truth, group)
    assert np.median(error) < 0.3 * np.median(angular_distance_deg(best, truth, group))


def test_a_far_away_second_peak_does_not_pull_the_mean() -> None:
    near = from_axis_angle([0, 0, 1], [0.0, 10.0, 120.0])
    grid = compose(from_axis_angle([1, 2, 3], 77.0), near)
    kept = Responsibilities(
        3, np.array([0, 3]), np.arange(3, dtype=np.int32), np.array([0.4, 0.3, 0.3], dtype=np.float32)
    )
    found = mean_poses(kept, grid, grid[:1], as_point_group("C1"), reach_deg=30.0)
    assert angular_distance_deg(found, grid[:1])[0] == pytest.approx(30 / 7, rel=0.01)


@pytest.mark.parametrize("at_once", [1, 7, 41, 1 << 20])
def test_the_likeliest_poses_of_each_frame_are_taken(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(mean_pose, "_SORTED_AT_ONCE", at_once)  # frames are sorted one by one, or together
    rng = np.random.default_rng(3)
    count = np.array([5, 0, 40, 3])
    start = np.concatenate([[0], np.cumsum(count)])
    row = np.concatenate([np.sort(rng.permutation(100)[:n]) for n in count]).astype(np.int32)
    kept = Responsibilities(100, start, row, rng.random(len(row)).astype(np.float32))
    few = likeliest(kept, 4)
    assert np.diff(few.start).tolist() == [4, 0, 4, 3]
    for d in range(4):
        own, best = slice(start[d], start[d + 1]), slice(few.start[d], few.start[d + 1])
        order = np.argsort(-kept.probability[own])[:4]
        np.testing.assert_array_equal(few.row[best], row[own][order])
        np.testing.assert_array_equal(few.probability[best], kept.probability[own][order])


def test_sorting_flat_posteriors_takes_little_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mean_pose, "_SORTED_AT_ONCE", 1 << 20)
    D, K = 20, 200_000
    probability = np.random.default_rng(4).random(D * K).astype(np.float32)
    kept = Responsibilities(K, np.arange(D + 1) * K, np.tile(np.arange(K, dtype=np.int32), D), probability)
    tracemalloc.start()
    likeliest(kept)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 75 * 2**20, f"{peak / 2**20:.0f} MiB beside {8 * D * K / 2**20:.0f} MiB"
