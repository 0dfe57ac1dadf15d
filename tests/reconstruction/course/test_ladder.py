"""Stages: from the first speckles to the edge."""

from itertools import pairwise

import pytest

from orienteer.orientation.grids import make_grid
from orienteer.reconstruction.course.ladder import Stage, ladder


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
