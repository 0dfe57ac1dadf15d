"""Poses of frames that neither half has seen, against the models of both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import compose, from_axis_angle, inverse, random_uniform
from orienteer.reconstruction.orienting.sentinels import is_flat
from orienteer.run.run import Run
from orienteer.validate.intensities import compare_intensities
from orienteer.validate.sentinel_poses import finished_emc, pose_agreement, poses_against


def test_two_halves_agree_on_the_poses_of_frames_that_neither_has_seen(good_halves: Any) -> None:
    parts, runs = good_halves
    reconstructions = [finished_emc(run, part, "cpu") for run, part in zip(runs, parts[:2], strict=True)]
    first, second = (poses_against(emc, parts.sentinels) for emc in reconstructions)
    turn = compare_intensities(runs[0].volumes()[0], runs[1].volumes()[0], 200.0).quaternion
    found = pose_agreement(first, second, turn, "D2", is_flat(reconstructions[0]))
    assert found.frames == len(parts.sentinels) > 20
    assert found.median_deg < 4
    assert found.percentile_90_deg > found.median_deg
    assert found.chance_deg > 30
    # They are right, too, which only a test can know.
    truth = parts.sentinels.read_columns(["truth_orientation"])["truth_orientation"]
    onto_truth = compose(inverse(truth), first)
    typical = onto_truth[int(np.argmin(np.median(_apart(onto_truth), axis=1)))]
    errors = angular_distance_deg(first, compose(truth, typical), "D2", is_flat(reconstructions[0]))
    assert np.median(errors) < 6


def _apart(quaternions: Any) -> Any:
    return angular_distance_deg(quaternions[:, None], quaternions[None], "D2")


def test_frames_that_a_run_has_oriented_get_nearly_the_same_poses_again(good_halves: Any) -> None:
    parts, runs = good_halves
    emc = finished_emc(runs[0], parts.half_1, "cpu")
    again = poses_against(emc, parts.half_1)
    own = runs[0].orientations()["quaternion"]
    assert np.median(angular_distance_deg(again, own, "D2", is_flat(emc))) < 3


def test_poses_are_compared_after_one_turn_for_all() -> None:
    first, turn = random_uniform(50, 1), from_axis_angle([3, 1, 2], 130)
    second = compose(first, turn)  # R2 = R1 A, for I1(A q) = I2(q)
    found = pose_agreement(first, second, turn)
    assert found.median_deg == pytest.approx(0, abs=1e-4)
    assert pose_agreement(first, random_uniform(50, 2), turn).median_deg > 80
    assert found.chance_deg == pytest.approx(131, abs=4)


def test_poses_that_a_symmetry_makes_equal_count_as_one_though_nobody_gave_it() -> None:
    group, turn = as_point_group("D3").quaternions, from_axis_angle([3, 1, 2], 130)
    first = random_uniform(60, 1)
    any_of_them = group[np.random.default_rng(2).integers(len(group), size=60)]
    second = compose(compose(first, any_of_them), turn)
    assert pose_agreement(first, second, turn).median_deg > 100
    found = pose_agreement(first, second, turn, alike=group)
    assert found.median_deg == pytest.approx(0, abs=1e-4)
    assert found.n_alike == 6
    assert found.chance_deg == pytest.approx(pose_agreement(first, second, turn, "D3").chance_deg)


def test_poses_of_other_frames_are_refused() -> None:
    with pytest.raises(OrienteerError, match="cannot be compared"):
        pose_agreement(random_uniform(3, 1), random_uniform(4, 1), [1, 0, 0, 0])


def test_a_run_that_has_not_begun_orients_nothing(good_run: Run, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "new", good_run.source, good_run.settings, device="cpu")
    with pytest.raises(OrienteerError, match="holds no reconstruction"):
        finished_emc(run, good_run.source)
