"""Where a run stands, from its folder alone."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from orienteer.run.lock import RunLock
from orienteer.run.standing import read_standing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    described = {
        "format": "orienteer-run", "version": 1, "run_id": "x", "method": "emc", "seed": 0, "device": "cpu",
        "input": {"frames": 100}, "settings_hash": "y",
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(described))
    return tmp_path


def log(folder: Path, *events: dict[str, Any]) -> None:
    time_ = "2026-11-15T20:00:00.000+00:00"
    lines = [json.dumps({"time": time_, **event}) for event in events]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")


STEP = {"event": "step", "iteration": 7, "stage": 2, "n_stages": 4, "agrees_to_A": 30.5, "seconds_left": 90.0}


def test_a_folder_without_a_run_is_new(tmp_path: Path) -> None:
    assert read_standing(tmp_path / "nowhere").state == "new"
    assert read_standing(tmp_path).state == "new"


def test_a_run_that_nobody_works_on_is_stopped_whatever_its_last_line(folder: Path) -> None:
    for events in ([{"event": "started"}, STEP], [STEP, {"event": "stopped", "iteration": 7}]):
        log(folder, *events)
        standing = read_standing(folder)
        assert (standing.state, standing.iteration, standing.frames) == ("stopped", 7, 100)
        assert standing.seconds_left == 90.0


def test_a_run_under_a_lock_works_and_its_time_runs_down(folder: Path) -> None:
    log(folder, STEP)
    with RunLock(folder):
        standing = read_standing(folder)
    assert standing.state == "working"
    assert standing.host == os.uname().nodename
    assert standing.seconds_left == 0.0  # the step was long ago


def test_a_lock_that_another_machine_left_behind_is_nobodys(folder: Path) -> None:
    log(folder, STEP)
    lock = folder / "lock"
    lock.write_text(json.dumps({"host": "gone", "pid": 1, "began": "1"}))
    assert read_standing(folder).host == "gone"
    os.utime(lock, (time.time() - 3600,) * 2)
    assert read_standing(folder).state == "stopped"


@pytest.mark.parametrize("end", ["finished", "failed"])
def test_an_end_is_told_with_its_reason(folder: Path, end: str) -> None:
    log(folder, STEP, {"event": end, "iteration": 7, "reason": "It is enough."})
    standing = read_standing(folder)
    assert (standing.state, standing.reason) == (end, "It is enough.")


def test_a_run_that_cannot_be_read_says_why(folder: Path) -> None:
    (folder / "run.json").write_text("{")
    standing = read_standing(folder)
    assert standing.state == "failed"
    assert "run.json" in standing.reason
