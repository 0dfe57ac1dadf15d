"""The event log: whole lines only, cut where a checkpoint ends, and valid JSON whatever a step says."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from orienteer.run.events import EventLog, read_events


@dataclass(frozen=True)
class Step:
    iteration: int
    change: float
    curve: np.ndarray
    path: Path


def log_of(path: Path, n_steps: int) -> EventLog:
    log = EventLog(path)
    log.append("started", iteration=0)
    for iteration in range(1, n_steps + 1):
        log.append_step(Step(iteration, float("nan"), np.array([1.0, np.inf]), Path("a")))
    return log


def test_steps_are_lines_of_strict_json(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", 2)
    lines = log.path.read_text().splitlines()
    assert len(lines) == 3

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    step = json.loads(lines[2], parse_constant=refuse)
    del step["time"]
    assert step == {"event": "step", "iteration": 2, "change": None, "curve": [1.0, None], "path": "a"}


def test_a_log_that_ends_anywhere_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    whole = log_of(tmp_path / "log", 3).path.read_bytes()
    for n_bytes in range(len(whole) + 1):
        (tmp_path / "log").write_bytes(whole[:n_bytes])
        assert len(read_events(tmp_path / "log")) == whole[:n_bytes].count(b"\n")


def test_cutting_takes_out_later_steps_and_torn_lines_and_nothing_else(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", 5)
    log.append("failed", iteration=3)
    with log.path.open("ab") as file:
        file.write(b'not json\n[1, 2]\n{"event":"step","iteration":6')
    assert log.cut(3) == 2
    assert [(e["event"], e["iteration"]) for e in read_events(log.path)] == [
        ("started", 0), ("step", 1), ("step", 2), ("step", 3), ("failed", 3),
    ]  # fmt: skip
    before = log.path.stat()
    assert log.cut(3) == 0
    assert log.path.stat().st_ino == before.st_ino  # nothing to cut: the file stays as it is


def test_no_log_is_an_empty_one(tmp_path: Path) -> None:
    assert read_events(tmp_path / "log") == []
    log = EventLog(tmp_path / "log")
    assert log.cut(0) == 0
    log.sync()
    assert not log.path.exists()
