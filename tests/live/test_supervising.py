"""The supervisor: whoever dies is started again, a little later each time, unless that is of no use."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orienteer.errors import FileError
from orienteer.live.folder import LiveFolder
from orienteer.live.supervising import Child, Supervisor
from orienteer.run.events import read_events
from orienteer.run.settings import Settings

WAIT_S = 60
# Waits for the end of its standard input, as a role does.
PATIENT = "import sys; print('at work', flush=True); sys.stdin.read(); sys.exit(143)"
UNTIL_TOLD = "import sys; sys.stdin.read()"


class Scripted(Supervisor):
    """Starts scripts instead of the roles of a live run."""

    scripts: dict[str, str]

    def command(self, role: str) -> list[str]:
        return [sys.executable, "-c", self.scripts[role]]


@pytest.fixture
def folder(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "run")
    live.make()
    live.begin({"sources": {"a": "nowhere"}}, Settings())
    return live


def supervise(folder: LiveFolder, **scripts: str) -> Scripted:
    supervisor = Scripted(folder, {role: {} for role in scripts})
    supervisor.scripts = scripts
    return supervisor


def look_until(supervisor: Supervisor, ready: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not ready():
        assert time.monotonic() < until, [(child.role, child.state) for child in supervisor.children]
        supervisor.look()
        time.sleep(0.02)


def test_who_ends_well_is_done_and_all_done_is_the_end(folder: LiveFolder) -> None:
    supervisor = supervise(folder, worker="print('has all')", map="pass")
    look_until(supervisor, lambda: supervisor.is_over)
    assert [child.state for child in supervisor.children] == ["done", "done"]
    assert [child.n_starts for child in supervisor.children] == [1, 1]
    assert supervisor.children[0].words == "has all"


def test_who_dies_is_started_again_later_each_time(folder: LiveFolder) -> None:
    supervisor = supervise(folder, worker="raise SystemExit(1)")
    worker: Child = supervisor.children[0]
    begun = []
    for n in (1, 2, 3):
        look_until(supervisor, lambda n=n: worker.n_starts == n and worker.process is None)
        begun.append(worker.begun_s)
    assert worker.not_before_s - worker.begun_s >= 2.0
    supervisor.stop(5)
    assert begun[1] - begun[0] >= 0.5
    assert begun[2] - begun[1] >= 1.0
    reasons = [event["reason"] for event in read_events(folder.log.path) if event["event"] == "failed"]
    assert reasons[0] == "the worker left with status 1."


def test_a_killed_process_is_started_again_and_the_log_says_how_it_ended(folder: LiveFolder) -> None:
    supervisor = supervise(folder, worker=PATIENT)
    worker = supervisor.children[0]
    look_until(supervisor, lambda: worker.words == "at work")
    assert worker.process is not None
    os.kill(worker.process.pid, signal.SIGKILL)
    look_until(supervisor, lambda: worker.n_starts == 2)
    supervisor.stop(20)
    assert any("ended by signal 9" in str(event.get("reason")) for event in read_events(folder.log.path))


def test_who_says_that_another_start_is_no_use_is_given_up(folder: LiveFolder) -> None:
    supervisor = supervise(folder, worker=PATIENT, map="print('no geometry'); raise SystemExit(64)")
    worker, growing = supervisor.children
    look_until(supervisor, lambda: growing.state == "given up")
    assert growing.words == "no geometry"
    assert not supervisor.is_over
    supervisor.stop(20)
    assert worker.process is not None
    assert worker.process.returncode is not None


def test_who_was_done_before_more_was_received_is_started_again(folder: LiveFolder) -> None:
    """A finished run goes on: its counters still say that it is over when a feeder looks at them first."""
    folder.write_counters({"received": 5, "is_finished": True})
    supervisor = supervise(folder, worker=UNTIL_TOLD, database="print('has all')")
    worker, database = supervisor.children
    look_until(supervisor, lambda: database.state == "done")
    folder.write_counters({"received": 9, "is_finished": True})
    assert worker.process is not None
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    look_until(supervisor, lambda: supervisor.is_over)
    assert (worker.n_starts, database.n_starts) == (1, 2)


def test_without_a_worker_the_run_is_over(folder: LiveFolder) -> None:
    supervisor = supervise(folder, worker="raise SystemExit(64)", map=PATIENT)
    look_until(supervisor, lambda: supervisor.is_over)
    supervisor.stop(20)
    assert supervisor.children[0].state == "given up"


def test_children_hear_of_the_end_of_their_supervisor(folder: LiveFolder) -> None:
    """Its death, however it comes, closes their standard input."""
    supervisor = supervise(folder, worker=PATIENT)
    worker = supervisor.children[0]
    look_until(supervisor, lambda: worker.words == "at work")
    assert worker.process is not None
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(WAIT_S) == 143


def test_who_does_not_leave_in_time_is_ended(folder: LiveFolder) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn = f"{deaf}; print('here', flush=True); time.sleep(600)"
    supervisor = supervise(folder, worker=stubborn)
    worker = supervisor.children[0]
    look_until(supervisor, lambda: worker.words == "here")
    supervisor.stop(0.5)
    assert worker.process is not None
    assert worker.process.returncode == -signal.SIGKILL


def test_what_a_join_has_freed_is_given_back(folder: LiveFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins read many segments: what they took would stay with a process that does little else."""
    n_made, given_back = [1, 0, 0], []

    def join(*_: object, **__: object) -> int:
        return n_made.pop(0) if n_made else 0

    monkeypatch.setattr("orienteer.live.supervising._JOIN_EVERY_S", 0.0)
    monkeypatch.setattr("orienteer.live.supervising.join_segments", join)
    monkeypatch.setattr("orienteer.live.supervising.give_back_freed_memory", lambda: given_back.append(True))
    supervisor = supervise(folder, worker=PATIENT)
    look_until(supervisor, lambda: not n_made)
    supervisor.stop(5.0)
    assert given_back == [True]


def test_a_full_disk_does_not_end_the_supervision(
    folder: LiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker leaves when it cannot write, and is started again until somebody has made room."""

    def full(*_: object, **__: object) -> None:
        raise FileError(folder.log.path, "could not be written: the disk is full.")

    supervisor = supervise(folder, worker="raise SystemExit(1)")
    worker: Child = supervisor.children[0]
    with monkeypatch.context() as disk:
        disk.setattr(folder.log, "append", full)
        look_until(supervisor, lambda: worker.n_starts == 2)
    supervisor.scripts["worker"] = "print('has all')"
    look_until(supervisor, lambda: supervisor.is_over)
    assert worker.state == "done"
