"""Questions to Slurm: few, shared by all who ask, and careful with one that does not answer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orienteer.cluster import queue
from orienteer.cluster.job_state import JobState, parse_sacct, parse_squeue
from orienteer.cluster.queue import read_queue

SQUEUE = """#!/bin/sh
echo asked >> {folder}/asked
[ -e {folder}/silent ] && echo "squeue: error: Unable to contact slurm controller" >&2 && exit 1
cat {folder}/jobs
"""
SACCT = """#!/bin/sh
echo "$@" >> {folder}/looked_up
[ -e {folder}/books ] || {{ echo "Slurm accounting storage is disabled" >&2; exit 1; }}
cat {folder}/books
"""


@pytest.fixture
def slurm_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for squeue and sacct that count how often they are asked."""
    for name, text in (("squeue", SQUEUE), ("sacct", SACCT)):
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "jobs").write_text("7|RUNNING|None|1:00:00|5:00|n[1-4]|2026-11-15T20:00:00\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def asked(folder: Path, what: str = "asked") -> int:
    path = folder / what
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_many_questions_within_half_a_minute_are_one_to_slurm(slurm_there: Path) -> None:
    for _ in range(5):
        assert read_queue(["7"]).jobs["7"].nodes == "n[1-4]"
    assert asked(slurm_there) == 1
    read_queue(["7"], newest_s=0)
    assert asked(slurm_there) == 2


def test_processes_that_ask_at_the_same_time_share_one_answer(slurm_there: Path) -> None:
    code = "from orienteer.cluster.queue import read_queue; print(read_queue(['7']).jobs['7'].state)"
    asking = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[0].strip() for process in asking] == ["RUNNING"] * 4
    assert asked(slurm_there) == 1


def test_no_job_no_question(slurm_there: Path) -> None:
    assert read_queue([]).jobs == {}
    assert asked(slurm_there) == 0


def test_a_scheduler_that_does_not_answer_is_left_in_peace_and_the_old_answer_is_shown(
    slurm_there: Path,
) -> None:
    read_queue(["7"])
    (slurm_there / "silent").touch()
    answer = read_queue(["7"], newest_s=0)
    assert "Unable to contact slurm controller" in answer.problem
    assert answer.jobs["7"].state == "RUNNING"
    assert asked(slurm_there) == 2
    assert read_queue(["7"]).problem == answer.problem
    assert asked(slurm_there) == 2


def test_a_job_that_has_left_the_queue_is_looked_up_once(slurm_there: Path) -> None:
    (slurm_there / "books").write_text("5|CANCELLED by 1000|00:10:00|n1\n6_1|TIMEOUT|01:00:00|n2\n")
    for _ in range(3):
        answer = read_queue(["5", "6_1", "7"], newest_s=0)
    assert (answer.jobs["5"].state, answer.jobs["6_1"].state) == ("CANCELLED", "TIMEOUT")
    assert asked(slurm_there, "looked_up") == 1
    assert (slurm_there / "looked_up").read_text().endswith("--jobs=5,6_1\n")


def test_a_cluster_that_keeps_no_books_is_not_asked_for_them_all_the_time(slurm_there: Path) -> None:
    for _ in range(3):
        assert "5" not in read_queue(["5"], newest_s=0).jobs
    assert asked(slurm_there, "looked_up") == 1


def test_how_a_job_ended_is_remembered_when_slurm_forgets_it(slurm_there: Path) -> None:
    (slurm_there / "jobs").write_text("7|COMPLETED|None|0:00|5:00|n1|N/A\n")
    read_queue(["7"])
    (slurm_there / "jobs").write_text("")
    assert read_queue(["7"], newest_s=0).jobs["7"].state == "COMPLETED"
    assert asked(slurm_there, "looked_up") == 0


@pytest.mark.parametrize("content", ["", "no json", "[]", '{"asked": 1}', json.dumps({"asked": "x"})])
def test_a_damaged_cache_is_no_answer(slurm_there: Path, content: str) -> None:
    read_queue(["7"])
    queue._cache().write_text(content)
    assert read_queue(["7"]).jobs["7"].state == "RUNNING"
    assert asked(slurm_there) == 2


def test_without_a_place_for_a_cache_slurm_is_asked(
    slurm_there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert read_queue(["7"]).jobs["7"].state == "RUNNING"


def test_a_machine_without_slurm_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_queue(["7"]).problem == "there is no Slurm on this machine"


def test_states_are_told_in_words() -> None:
    lines = [
        "7|PENDING|Resources|4:00:00|0:00||2026-11-15T22:40:00",
        "8_2|PENDING|(null)|x|y||N/A",
        "9|NODE_FAIL|None|0:00|1-00:00:01|n|N/A",
        "not a job",
    ]
    jobs = parse_squeue("\n".join(lines))
    assert jobs["7"].words == "waits: its nodes are busy, perhaps at 2026-11-15 22:40:00"
    assert (jobs["7"].seconds_left, jobs["9"].seconds_used) == (14400, 86401)
    assert jobs["9"].words == "lost a node"
    assert jobs["9"].is_over
    assert JobState("1", "BOOT_FAIL").words == "boot fail"
    assert parse_sacct("5||00:00|\n") == {}
