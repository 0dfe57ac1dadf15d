"""``orienteer status``: runs and their jobs on one page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orienteer.cli.console import output
from orienteer.cluster.records import JobRecord, append_record

SQUEUE = """#!/bin/sh
echo "7|PENDING|Priority|4:00:00|0:00||N/A"
echo "8|RUNNING|None|0:30:00|5:00|n[1-4]|2026-11-15T20:00:00"
"""


@pytest.fixture
def place(run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with runs in several states, where squeue knows of jobs 7 and 8."""
    programs = tmp_path / ".programs"
    programs.mkdir()
    (programs / "squeue").write_text(SQUEUE)
    (programs / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    # Where it was loaded before, it has the width of the terminal then.
    monkeypatch.setattr(output, "_width", 160)
    return tmp_path


def a_run(folder: Path, *events: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    described = {
        "format": "orienteer-run", "version": 1, "run_id": "x", "method": "emc", "seed": 0, "device": "cpu",
        "input": {"frames": 100}, "settings_hash": "y",
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(described))
    lines = [json.dumps({"time": "2026-11-15T20:00:00+00:00", **event}) for event in events]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")


def a_job(folder: Path, number: str) -> None:
    append_record(folder, JobRecord(number, None, "x", "2026-11-15T20:00:00", 4, "generic", "x.log", "x.sh"))


def step(number: int, left: float = 60.0) -> dict[str, Any]:
    return {"event": "step", "iteration": number, "agrees_to_A": 24.1, "seconds_left": left}


def test_every_run_below_the_folder_is_told_with_its_job(run: Callable[..., Any], place: Path) -> None:
    a_run(place / "runs" / "r1", step(38), {"event": "finished", "reason": "Nothing is gained any more."})
    a_run(place / "runs" / "r2", step(21, left=7200.0))
    a_job(place / "runs" / "r2", "8")
    a_job(place / "runs" / "r3", "7")
    shown = run("status")
    assert shown.status == 0, shown.errors
    lines = {line.split()[0]: line for line in shown.output.splitlines() if line.startswith("runs")}
    assert "Nothing is gained any more." in lines["runs/r1"]
    assert "works on n[1-4], 30:00 min of its time left" in lines["runs/r2"]
    assert "starts" in lines["runs/r2"]
    assert "not begun" in lines["runs/r3"]
    assert "waits: other jobs come first" in lines["runs/r3"]
    assert "its job will end 1:30 h before the run" in shown.errors


def test_json_tells_the_same_for_scripts(run: Callable[..., Any], place: Path) -> None:
    a_run(place / "r2", step(21))
    a_job(place / "r2", "8")
    told = run("status", "r2", "--json").json
    assert told["slurm"]["problem"] == ""
    (only,) = told["runs"]
    assert (only["path"], only["iteration"], only["jobs"][0]["slurm"]["state"]) == ("r2", 21, "RUNNING")


def test_runs_that_are_over_need_no_question_to_slurm(run: Callable[..., Any], place: Path) -> None:
    a_run(place / "r1", step(38), {"event": "finished", "reason": "Enough."})
    a_job(place / "r1", "8")
    (place / ".programs" / "squeue").write_text("#!/bin/sh\ntouch asked\n")
    assert "finished" in run("status").output
    assert not Path("asked").exists()


def test_a_failure_is_told_with_its_reason(run: Callable[..., Any], place: Path) -> None:
    a_run(place / "r1", step(3), {"event": "failed", "reason": "The disk is full."})
    assert "The disk is full." in run("status", "r1").output


def test_a_settings_file_stands_for_its_run(run: Callable[..., Any], place: Path) -> None:
    (place / "r1.toml").write_text('[run]\nout = "elsewhere"\n')
    a_run(place / "elsewhere", step(4))
    assert "elsewhere" in run("status", "r1.toml").output


def test_without_slurm_runs_are_told_all_the_same(
    run: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run(place / "r1", step(4))
    a_job(place / "r1", "8")
    monkeypatch.setenv("PATH", "/nowhere")
    shown = run("status")
    assert "stopped" in shown.output
    assert "there is no Slurm on this machine" in shown.errors


def test_a_place_that_is_not_there_is_refused(run: Callable[..., Any], place: Path) -> None:
    assert "there is no such run" in run("status", "nowhere").errors
    assert "There is no run here" in run("status").output
