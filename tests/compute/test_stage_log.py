"""The log in which every rank keeps where its time went."""

import json
import time
from pathlib import Path

import pytest

from orienteer.compute.stage_log import StageLog, awaited, is_logged, log_name, logged


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_stage_is_a_line_with_its_time_and_frames(tmp_path: Path) -> None:
    before = time.time()
    with StageLog(tmp_path, rank=2, n_ranks=4) as log:
        log.iteration = 3
        parts: dict[str, float] = {}
        with logged("orient", frames=7, first=21, parts=parts):
            time.sleep(0.02)
            parts["score"] = 0.015
        log.write()
    begin, line = read(tmp_path / "events_rank_002.jsonl")
    assert (begin["stage"], begin["rank"], begin["ranks"]) == ("begin", 2, 4)
    assert begin["host"]
    assert (line["iteration"], line["stage"], line["frames"], line["first"]) == (3, "orient", 7, 21)
    assert line["seconds"] >= 0.02
    assert before - 1 <= line["start"] <= time.time()
    assert line["parts"] == {"score": 0.015}


def test_nothing_is_noted_outside_a_log() -> None:
    assert not is_logged()
    with logged("orient"):
        pass
    with StageLog() as log:
        assert is_logged()
    assert [line["stage"] for line in log.lines] == ["begin"]


def test_a_stage_that_fails_leaves_no_line() -> None:
    with StageLog() as log, pytest.raises(ValueError), logged("orient"):
        raise ValueError
    assert len(log.lines) == 1


def test_writing_twice_repeats_nothing_and_a_second_process_appends(tmp_path: Path) -> None:
    for _ in range(2):
        with StageLog(tmp_path) as log:
            with logged("orient"):
                time.sleep(0.011)
            log.write()
            log.write()
    stages = [line["stage"] for line in read(tmp_path / log_name(0))]
    assert stages == ["begin", "orient", "begin", "orient"]


def test_short_stages_of_one_name_become_one_line() -> None:
    log = StageLog()
    log.note("read", 100.0, 0.001, frames=2, first=0)
    log.note("read", 100.001, 0.001, frames=3, first=2)
    log.note("orient", 100.002, 0.001)
    log.note("read", 100.003, 0.001, frames=1, first=5)
    log.note("read", 100.004, 0.5, frames=1, first=6)
    lines = [(line["stage"], line.get("frames"), round(line["seconds"], 6)) for line in log.lines[1:]]
    assert lines == [("read", 5, 0.002), ("orient", None, 0.001), ("read", 1, 0.001), ("read", 1, 0.5)]


def test_waiting_for_items_is_noted_and_working_on_them_is_not() -> None:
    def slow() -> object:
        for item in "abc":
            time.sleep(0.02)
            yield item

    got = []
    with StageLog() as log:
        for item in awaited(slow()):
            got.append(item)
            time.sleep(0.05)
    waits = [line["seconds"] for line in log.lines[1:] if line["seconds"] > 0.015]
    assert got == ["a", "b", "c"]
    assert {line["stage"] for line in log.lines[1:]} == {"read"}
    assert len(waits) == 3
    assert sum(waits) < 0.15 + 0.06  # and none of the work, even on a busy machine
