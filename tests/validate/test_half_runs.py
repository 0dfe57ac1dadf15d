"""Two runs that know nothing of each other."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.run.run import Run
from orienteer.validate.half_runs import half_runs, half_seed, iterate_halves
from orienteer.validate.half_sets import split
from orienteer.validate.independence import check_independence


def test_halves_are_finished_runs_of_their_own_frames_and_seeds(good_run: Run, good_halves: Any) -> None:
    parts, runs = good_halves
    for half, (part, run) in enumerate(zip(parts[:2], runs, strict=True), start=1):
        assert run.finished
        assert run.seed == half_seed(good_run.seed, half)
        assert np.array_equal(run.orientations()["event_id"], part.event_ids())
        assert run.settings == good_run.settings
        assert Run.open(run.path, part).finished
    check_independence(*runs)
    # Nothing of the one is in the other: not even the start.
    one, other = (run.volumes()[0].values for run in runs)
    assert not np.array_equal(one, other, equal_nan=True)


def test_halves_that_were_stopped_go_on_where_they_were(
    good_run: Run, good_halves: Any, tmp_path: Path
) -> None:
    parts, finished = good_halves
    for step in iterate_halves(half_runs(good_run, parts, tmp_path)):
        if step.step.iteration == 3:
            break
    steps = iterate_halves(half_runs(good_run, parts, tmp_path))
    found = next(steps)
    steps.close()
    assert (found.half, found.step.iteration) == (1, 4)
    undisturbed = finished[0].steps[3]
    again = Run.open(tmp_path / "half_1").steps[3]
    assert again["log_likelihood"] == undisturbed["log_likelihood"]


def test_seeds_of_halves_differ_from_each_other_and_from_run_to_run() -> None:
    seeds = [half_seed(seed, half) for seed in range(50) for half in (1, 2)]
    assert len(set(seeds)) == 100
    # Halves of a run that were begun by an earlier version go on with the same draws.
    assert (half_seed(7, 1), half_seed(7, 2)) == (541321514, 2227135938)


def test_shuffled_halves_from_one_start_are_refused(good_run: Run, tmp_path: Path) -> None:
    parts = split(good_run.source)
    runs = [
        Run.create(tmp_path / name, part, good_run.settings, seed=4, device="cpu")
        for name, part in zip("ab", parts[:2], strict=True)
    ]
    for run in runs:
        next(run.iterate(1))
    with pytest.raises(OrienteerError, match="begin with the same random start"):
        check_independence(*runs)


def test_a_half_and_the_whole_are_refused(good_run: Run, good_halves: Any) -> None:
    with pytest.raises(OrienteerError, match=r"share \d+ frames"):
        check_independence(good_run, good_halves[1][0])


def test_halves_look_for_as_many_states_as_the_run_has_found(good_run: Run, tmp_path: Path) -> None:
    parts = split(good_run.source)
    for name, models in (("given", 2), ("auto", "auto")):
        settings = good_run.settings.model_copy(update={"models": models})
        run = Run.create(tmp_path / name, good_run.source, settings, device="cpu")
        next(run.iterate(1))
        halves = half_runs(run, parts)
        assert [half.settings.models for half in halves] == [2 if models == 2 else 1] * 2


def test_halves_of_given_poses_begin_whether_a_file_or_a_column_gives_them(
    good_run: Run, tmp_path: Path
) -> None:
    """Both halves are given poses of one frame of reference, which is said of them; nothing is refused."""
    from orienteer.run.orientations_file import write_orientations

    source, file = good_run.source, tmp_path / "poses.h5"
    poses = source.read_columns(["truth_orientation"])["truth_orientation"]
    write_orientations(file, {"event_id": source.event_ids(), "quaternion": poses})
    for name, given in (
        ("file", {"known_orientations_file": str(file)}),
        ("column", {"known_orientations_column": "truth_orientation"}),
    ):
        settings = good_run.settings.model_copy(update=given)
        run = Run.create(tmp_path / name, source, settings, device="cpu")
        parts = split(source)
        for half, part in zip(half_runs(run, parts), parts[:2], strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that poses were given
                list(half.iterate(1))
            found = half.orientations()
            own = part.read_columns(["truth_orientation"])["truth_orientation"]
            assert np.allclose(found["quaternion"][~found["sentinel"]], own[~found["sentinel"]])
