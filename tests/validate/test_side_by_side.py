"""Halves in processes of their own: they find what one process finds, and end with whoever started them."""

import json
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.phase.files import DESCRIPTION
from orienteer.phase.settings import PhaseSettings
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate import side_by_side
from orienteer.validate.kept_models import FILE, keep_model, kept_model
from orienteer.validate.sentinel_poses import HalfModel
from orienteer.validate.side_by_side import SideBySide, can_go_side_by_side
from orienteer.validate.validation import validate

PHASING = PhaseSettings(starts=2, schedule="40*raar(0.87) 10*er", support_volume_A3=1.3e6)
SETTINGS = ValidationSettings(sentinels=0.1, replicates=4, random_phases=1)


def copy_of(run: Run, folder: Path) -> Run:
    shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("validation"))
    return Run.open(folder, run.source)


def test_two_processes_find_what_one_finds(
    short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, several = copy_of(short_run, tmp_path / "one"), copy_of(short_run, tmp_path / "several")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = validate(one, SETTINGS, PHASING, device="cpu")
    monkeypatch.setattr(side_by_side, "can_go_side_by_side", lambda *_: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a process that failed would be told
        with SideBySide.beginning(several, SETTINGS, PHASING, "cpu") as at_work:
            at_work.wait()
            folder = several.path / "validation"
            assert all((folder / half / FILE).exists() for half in ("half_1", "half_2"))
            assert all((folder / half / DESCRIPTION).exists() for half in ("half_1", "half_2"))
            stamps = [(folder / half / DESCRIPTION).stat().st_mtime_ns for half in ("half_1", "half_2")]
            found = validate(several, SETTINGS, PHASING, device="cpu", at_work=at_work)
    assert stamps == [(folder / half / DESCRIPTION).stat().st_mtime_ns for half in ("half_1", "half_2")]
    np.testing.assert_allclose(found.intensity.correlation, alone.intensity.correlation, atol=1e-3)
    assert found.sentinels is not None
    assert alone.sentinels is not None
    assert found.sentinels.median_deg == pytest.approx(alone.sentinels.median_deg, abs=0.2)
    assert json.dumps(found.describe()["halves"]) == json.dumps(alone.describe()["halves"])


def test_a_process_that_fails_is_told_and_its_work_is_done_here(
    short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copy_of(short_run, tmp_path / "run")
    monkeypatch.setattr(side_by_side, "can_go_side_by_side", lambda *_: True)
    monkeypatch.setattr(
        side_by_side, "_PROGRAM", (*side_by_side._PROGRAM[:1], "-c", "raise SystemExit('no')")
    )
    with SideBySide.beginning(run, SETTINGS, PHASING, "cpu") as at_work:
        with pytest.warns(UserWarning, match=r"half 1 has ended early \(no\)"):
            at_work.wait()
        assert at_work.halves is not None
        assert not at_work.halves.finished


def test_a_process_that_ends_before_it_has_its_order_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    popen = subprocess.Popen

    def ended(*given: Any, **options: Any) -> "subprocess.Popen[bytes]":
        process = popen(*given, **options)
        process.wait()
        return process

    monkeypatch.setattr(side_by_side, "_PROGRAM", ("true",))
    monkeypatch.setattr(subprocess, "Popen", ended)
    process, words = side_by_side._started(side_by_side._PROGRAM, {"cores": 1})
    side_by_side._let_go(process)
    words.close()
    assert process.returncode == 0


def test_processes_end_when_nobody_waits_for_them(
    short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copy_of(short_run, tmp_path / "run")
    monkeypatch.setattr(side_by_side, "can_go_side_by_side", lambda *_: True)
    with SideBySide.beginning(run, SETTINGS, PHASING, "cpu") as at_work:
        processes = [process for _, process, _ in at_work._at_work]
        assert len(processes) == 2
    assert all(process.returncode is not None for process in processes)


def test_on_the_cpu_one_half_follows_the_other(short_run: Run) -> None:
    assert not can_go_side_by_side(short_run, "cpu")
    with SideBySide.beginning(short_run, SETTINGS, PHASING, "cpu") as at_work:
        assert at_work.halves is None


def test_a_run_that_is_not_over_is_not_validated(short_run: Run, tmp_path: Path) -> None:
    begun = Run.create(tmp_path / "begun", short_run.source, short_run.settings, device="cpu")
    with pytest.raises(OrienteerError, match="has not come to its end"):
        validate(begun, SETTINGS, PHASING, device="cpu", at_work=SideBySide())


def test_an_answer_holds_for_its_run_and_its_sentinels(short_run: Run, tmp_path: Path) -> None:
    run, sentinels = copy_of(short_run, tmp_path / "run"), short_run.source
    said = HalfModel(3, 200.0, 0.02, False, np.eye(4))
    assert kept_model(run, sentinels) is None
    keep_model(run, sentinels, said)
    told = kept_model(run, sentinels)
    assert told is not None
    assert (told.frames, told.diameter_A, told.edge_inv_A, told.is_flat) == (3, 200.0, 0.02, False)
    np.testing.assert_array_equal(told.poses, np.eye(4))
    other = Run.open(run.path, sentinels)
    other.described = {**run.described, "run_id": "another"}
    assert kept_model(other, sentinels) is None
    (run.path / FILE).write_bytes((run.path / FILE).read_bytes()[:100])
    assert kept_model(run, sentinels) is None
