"""Stages: from the first speckles to the edge."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial import KDTree

from orienteer.orientation.grids import make_grid
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.pose_grid import PoseGrid, angle_of_chord
from orienteer.orientation.quaternion import compose, random_uniform
from orienteer.reconstruction.course.ladder import Stage, askew_stages, ladder
from orienteer.reconstruction.workspace import grid_of


@pytest.mark.parametrize(
    ("edge_A", "diameter_A"), [(12.0, 215.0), (30.0, 300.0), (200.0, 150.0), (3.0, 1000.0)]
)
def test_stages_reach_from_the_first_speckles_to_the_edge(edge_A: float, diameter_A: float) -> None:
    stages = ladder(1 / edge_A, diameter_A, finest_level=0)
    assert len(stages) >= 2
    assert stages[-1].scored_inv_A == stages[-1].merged_inv_A == 1 / edge_A
    radii = [stage.scored_inv_A for stage in stages]
    assert radii == sorted(radii)
    for before, after in pairwise(stages):
        assert before.merged_inv_A == after.scored_inv_A  # what comes next is merged already
        assert after.level >= before.level
    assert ladder(1 / edge_A, diameter_A, finest_level=6)[-1].level <= 6


def test_poses_are_counted_as_the_grid_has_them() -> None:
    for level in (4, 7):
        stage = Stage(0.1, 0.1, level)
        assert stage.n_poses() == len(make_grid("600-cell", level))
        assert stage.n_poses(60) == len(make_grid("600-cell", level, "I"))


def test_two_passes_where_one_would_meet_too_many_poses() -> None:
    def passes(device: str, order: int = 1, level: int = 0) -> list[tuple[int, bool]]:
        stages = ladder(1 / 12.0, 215.0, level, device=device, group_order=order)  # type: ignore[arg-type]
        return [(stage.level, stage.in_two_passes) for stage in stages]

    assert passes("cpu") == [(8, False), (14, True)]
    assert passes("cuda") == [(8, False), (13, False)]  # cheap there
    assert passes("cpu", order=60) == [(8, False), (13, False)]  # few poses
    assert passes("cpu", level=11)[-1] == (10, True)  # halves of the limit are a grid, too
    assert Stage(1.0, 1.0, 14, in_two_passes=True).first_level == 7


@pytest.mark.parametrize("group", ["I", "O", "T"])
def test_likenesses_between_poses_make_a_grid_as_near_as_the_one_that_it_stands_for(
    group: str,
) -> None:
    orientations, few = random_uniform(1000, 5), 6
    first = Stage(0.1, 0.1, 4)
    many = next(
        n for n in range(30, few, -1)
        if askew_stages([first, replace(first, level=n)], group, "cuda")[1].level == few
    )  # fmt: skip

    def rms_to_nearest_deg(grid: PoseGrid, rotations: Any) -> float:
        alike = compose(grid.quaternions[:, None], rotations).reshape(-1, 4)
        chords, _ = KDTree(np.concatenate([alike, -alike])).query(orientations)
        return float(np.sqrt(np.mean(np.square(angle_of_chord(chords)))))

    turned = rms_to_nearest_deg(grid_of(few, "C1", is_turned=True), PointGroup(group).quaternions)
    plain = rms_to_nearest_deg(grid_of(many, "C1", is_turned=False), PointGroup().quaternions)
    assert many > 1.8 * few
    assert turned < 1.05 * plain


def test_stages_of_a_found_symmetry_are_never_coarser_than_the_first_and_go_in_as_many_passes() -> None:
    stages = ladder(1 / 15, 900, 0)
    assert [stage.level for stage in stages] == [8, 20, 30, 42]
    found = {group: askew_stages(stages, group, "cpu") for group in "IOT"}
    assert found["I"][0] == stages[0]
    for group in "IOT":
        assert all(stage.level >= 8 for stage in found[group])
        assert [stage.voxel_inv_A for stage in found[group]] == [stage.voxel_inv_A for stage in stages]
    assert [stage.in_two_passes for stage in found["T"]] == [False, True, True, True]
    assert [stage.in_two_passes for stage in askew_stages(stages, "I", "cuda")] == [False] * 4
