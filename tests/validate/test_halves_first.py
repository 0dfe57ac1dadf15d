"""A run that begins with what its halves have found comes to the same, sooner; without it, at random."""

import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.compare.comparison import compare
from orienteer.phase.files import DESCRIPTION
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.course.ladder import Stage
from orienteer.run.checkpoint import LAST, PREVIOUS
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate import side_by_side
from orienteer.validate.halves import Halves, begin_halves
from orienteer.validate.halves_first import begin_with_halves, can_begin_with_halves, stage_for
from orienteer.validate.kept_maps import FILE, HalfMap, kept_map
from orienteer.validate.side_by_side import SideBySide
from orienteer.validate.validation import validate
from orienteer.validate.whole_way import go_the_whole_way
from orienteer.volume.checksum import checksum

PHASING = PhaseSettings(starts=2, schedule="40*raar(0.87) 10*er", support_volume_A3=1.3e6)
SETTINGS = ValidationSettings(sentinels=0.1, replicates=4, random_phases=1)


@pytest.fixture(autouse=True)
def remarks_are_no_errors() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fresh(run: Run, folder: Path, **changes: Any) -> Run:
    """A run of the same frames that has not begun."""
    settings = run.settings.model_copy(update=changes)
    return Run.create(folder, run.source.path, settings, seed=2, device="cpu")


def led(run: Run) -> Halves:
    return begin_halves(run, SETTINGS, "cpu", beside=True, lead=True)


def test_a_run_that_begins_with_its_halves_comes_to_the_same_in_fewer_iterations(
    good_run: Run, tmp_path: Path
) -> None:
    run = fresh(good_run, tmp_path / "run")
    halves = led(run)
    assert begin_with_halves(run, halves)
    assert halves.finished
    assert run.iteration == 0
    n_steps = sum(1 for _ in run.iterate())
    assert n_steps < good_run.iteration / 2
    assert run.steps[0]["stage"] == run.steps[0]["n_stages"]
    assert any("two halves of its frames agree" in remark for remark in run.remarks)
    found, wanted = (one.volumes()[0] for one in (run, good_run))
    correlation = compare(wanted, found).curve.correlation
    assert np.nanmean(correlation[2:12]) > 0.9
    assert not any((half.path / FILE).exists() for half in halves.runs)  # they have served
    validated = validate(run, SETTINGS, PHASING, device="cpu", halves=halves)
    assert validated.statement.startswith("Two independent halves of ")


def test_a_run_goes_on_from_its_halves_after_a_stop(good_run: Run, tmp_path: Path) -> None:
    run = fresh(good_run, tmp_path / "run")
    assert begin_with_halves(run, led(run))
    again = Run.open(run.path)
    next(iter(again.iterate(1)))
    assert again.steps[0]["stage"] == again.steps[0]["n_stages"]
    assert not begin_with_halves(again, led(again))  # it has begun


def run_of_killed_halves(good_run: Run, folder: Path) -> Run:
    """A run that has not begun, whose halves were killed when their end was logged, before anything else."""
    run = fresh(good_run, folder)
    shutil.copytree(good_run.path / "validation", run.path / "validation")
    for half in (run.path / "validation").glob("half_?"):
        for left in (FILE, "sentinels.npz"):
            (half / left).unlink(missing_ok=True)
    return run


@pytest.mark.usefixtures("good_halves")
def test_halves_that_were_killed_before_their_maps_were_kept_lead_all_the_same(
    good_run: Run, tmp_path: Path
) -> None:
    run = run_of_killed_halves(good_run, tmp_path / "run")
    halves = led(run)
    assert halves.finished
    assert begin_with_halves(run, halves)
    step = next(iter(run.iterate(1)))
    assert step.stage == step.n_stages


def test_a_map_that_is_made_again_is_the_one_that_was_kept(short_run: Run, tmp_path: Path) -> None:
    halves = led(fresh(short_run, tmp_path / "run"))
    half = halves.runs[0]
    sum(1 for _ in half.iterate())
    kept = halves.map_of(0, "cpu")
    (half.path / FILE).unlink()
    again = halves.map_of(0, "cpu")
    assert again.scored_inv_A == kept.scored_inv_A
    for name, value in kept.learnt.state().items():
        np.testing.assert_array_equal(again.learnt.state()[name], value, err_msg=name)


@pytest.mark.usefixtures("good_halves")
def test_a_run_whose_half_has_no_map_says_that_it_begins_at_random(good_run: Run, tmp_path: Path) -> None:
    run = run_of_killed_halves(good_run, tmp_path / "run")
    halves = led(run)
    for name in (LAST, PREVIOUS):
        (halves.runs[1].path / name).unlink(missing_ok=True)
    assert not begin_with_halves(run, halves)
    assert next(iter(run.iterate(1))).stage == 1
    remark = next(remark for remark in run.remarks if "at random" in remark)
    assert "half_2" in remark


def test_halves_that_show_nothing_in_common_lead_nobody(noise_run: Run, tmp_path: Path) -> None:
    run = fresh(noise_run, tmp_path / "run", iterations=3)
    halves = led(run)
    assert not begin_with_halves(run, halves)
    assert halves.finished
    by_itself = fresh(noise_run, tmp_path / "by_itself", iterations=3)
    first, wanted = (next(iter(one.iterate(1))) for one in (run, by_itself))
    assert first.stage == 1
    assert first.log_likelihood == wanted.log_likelihood


def test_no_half_knows_anything_of_the_run(good_run: Run, tmp_path: Path) -> None:
    """The halves of two runs that differ in everything that halves must not know are the same."""
    run = fresh(good_run, tmp_path / "run", iterations=2)
    other = fresh(good_run, tmp_path / "other", iterations=2)
    begin_with_halves(run, led(run))
    sum(1 for _ in other.iterate())
    beside = led(other)
    begin_with_halves(other, beside)
    for half in beside.runs:
        sum(1 for _ in half.iterate())
        mine = run.path / "validation" / half.path.name
        np.testing.assert_array_equal(Run.open(mine).volumes()[0].values, half.volumes()[0].values)


def test_only_a_run_of_one_model_with_unknown_poses_begins_so(good_run: Run, tmp_path: Path) -> None:
    assert can_begin_with_halves(fresh(good_run, tmp_path / "plain"))
    for name, changes in {
        "models": {"models": 2},
        "junk": {"junk_classes": 1},
        "background": {"background": "estimate"},
        "known": {"known_orientations_column": "truth_orientation"},
    }.items():
        assert not can_begin_with_halves(fresh(good_run, tmp_path / name, **changes))
    assert not can_begin_with_halves(good_run)
    settings = dict(good_run.settings)
    of_mtip = Run.create(tmp_path / "mtip", good_run.source.path, settings, device="cpu", method="mtip")
    assert not can_begin_with_halves(of_mtip)


def test_a_run_begins_at_the_last_stage_that_its_half_has_reached() -> None:
    stages = [Stage(radius, radius, 4) for radius in (0.01, 0.02, 0.03)]
    learnt: Any = None
    assert [stage_for(HalfMap(learnt, reach), stages) for reach in (0.005, 0.01, 0.0199, 0.02, 0.05)] == [
        0, 0, 0, 1, 2,
    ]  # fmt: skip


def test_a_map_that_was_cut_off_is_none(short_run: Run, tmp_path: Path) -> None:
    run = fresh(short_run, tmp_path / "run")
    halves = led(run)
    half = halves.runs[0]
    assert kept_map(half) is None
    sum(1 for _ in half.iterate())
    assert kept_map(half) is not None
    (half.path / FILE).write_bytes((half.path / FILE).read_bytes()[:1000])
    assert kept_map(half) is None


@pytest.mark.slow(reason="halves lead a run, and processes find what one finds, every time")
def test_processes_lead_a_run_and_phase_it(
    good_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "can_go_side_by_side", lambda *_: True)
    warnings.simplefilter("error", UserWarning)  # a process that failed would be told
    warnings.filterwarnings("ignore", message="(?!The process)")
    run = fresh(good_run, tmp_path / "run")
    density, found = go_the_whole_way(run, SETTINGS, PHASING, device="cpu")
    assert run.steps[0]["stage"] == run.steps[0]["n_stages"]
    assert density.density.shape == Phasing.open(run.path).density.shape
    assert found.belongs_to["density"]
    assert found.errors is not None
    assert found.resolution_A is not None


@pytest.mark.slow(reason="work of a process that fails is done here every time, in test_side_by_side.py")
def test_a_density_whose_process_has_failed_is_made_and_named_by_the_validation(
    short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "can_go_side_by_side", lambda *_: True)
    monkeypatch.setattr(side_by_side, "_ON_WHOLE", (sys.executable, "-c", "raise SystemExit('no room')"))
    run = fresh(short_run, tmp_path / "run")
    with pytest.warns(UserWarning, match="density of the run has ended early"):
        density, found = go_the_whole_way(run, SETTINGS, PHASING, device="cpu")
    assert found.belongs_to["density"] == checksum(density.density)
    assert found.errors is not None


def test_the_whole_way_of_a_run_that_its_halves_cannot_lead(short_run: Run, tmp_path: Path) -> None:
    run = fresh(short_run, tmp_path / "run", junk_classes=1)
    _, found = go_the_whole_way(run, SETTINGS, PHASING, device="cpu")
    assert run.steps[0]["stage"] == 1
    assert found.belongs_to["density"]


def test_a_process_that_nobody_asks_to_phase_ends(
    short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "can_go_side_by_side", lambda *_: True)
    run = fresh(short_run, tmp_path / "run")
    with SideBySide.beginning(run, SETTINGS, PHASING, "cpu", lead=True) as at_work:
        processes = [process for _, process, _ in at_work._on_whole]
        assert len(processes) == 2
        at_work.wait_for_whole()
    assert all(process.returncode is not None for process in processes)
    assert not (run.path / DESCRIPTION).exists()
