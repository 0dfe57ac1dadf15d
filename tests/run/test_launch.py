"""What is passed on from launchers and ranks, what is read from their words, and how many ranks there are."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from orienteer.run import launch as launching
from orienteer.run.available import available_ranks
from orienteer.run.launch import Lost, launch, launcher

MPICH = """\
step 1

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4098 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
SLURM = """\
step 1
srun: error: node7: task 3: Killed
slurmstepd: error: *** STEP 12.0 ON node6 CANCELLED AT 2026-11-15T12:00:00 ***
srun: error: node6: tasks 0-2: Terminated
"""


def speaking(monkeypatch: pytest.MonkeyPatch, words: str, status: int) -> None:
    """A launcher that says this and leaves."""
    program = f"import sys; print({words!r}, end=''); sys.exit({status})"
    monkeypatch.setattr(launching, "launcher", lambda *_: [sys.executable, "-c", program])


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        (MPICH, Lost("vm", None, 4098, "was killed (signal 9)")),
        (SLURM, Lost("node7", 3, None, "has ended: Killed")),
    ],
)
def test_the_lost_rank_is_read_and_nothing_else_of_the_launcher_is_shown(
    words: str, lost: Lost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speaking(monkeypatch, words, 9)
    ending = launch(["ignored"], 2)
    assert ending.status == 9
    assert ending.lost[0] == lost
    assert capsys.readouterr().out == "step 1\n"


def test_empty_lines_of_the_ranks_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speaking(monkeypatch, "a\n\n\nb\n", 0)
    assert launch(["ignored"], 2).status == 0
    assert capsys.readouterr().out == "a\n\n\nb\n"


def test_one_rank_needs_no_launcher_and_its_death_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "launcher", None)
    kill = "import os; os.kill(os.getpid(), 9)"
    ending = launch([sys.executable, "-c", kill], 1)
    assert ending.status == 137
    assert ending.lost[0].rank == 0
    assert "signal 9" in ending.lost[0].what


@pytest.mark.parametrize(("sent", "came"), [(signal.SIGUSR1, 10), (signal.SIGHUP, 15)])
def test_signals_are_passed_on(sent: signal.Signals, came: int, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = (
        "import signal, sys, time, pathlib\n"
        "for n in (10, 15): signal.signal(n, lambda number, _: sys.exit(100 + number))\n"
        f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)"
    )

    def send() -> None:
        while not ready.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), sent)

    threading.Thread(target=send, daemon=True).start()
    ending = launch([sys.executable, "-c", program], 1)
    assert (ending.status, ending.signal) == (100 + came, sent)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Slurm job of four nodes with two tasks each; what sinfo says is in a file."""
    for name, text in (("srun", "exit 0"), ("sinfo", f"cat {tmp_path}/states")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-4]")
    return tmp_path / "states"


def test_inside_slurm_there_are_as_many_ranks_as_its_nodes_can_have(slurm: Path) -> None:
    slurm.write_text("n1 allocated\nn2 mixed\nn3 allocated\nn4 draining\n")
    assert available_ranks(None).n_ranks == 8
    assert available_ranks(4).n_ranks == 4
    slurm.write_text("n1 allocated\nn2 down*\nn3 allocated\nn4 allocated*\n")
    now = available_ranks(None)
    assert (now.n_ranks, now.lost_nodes) == (4, ("n2", "n4"))
    assert launcher(4, now.lost_nodes) == ["srun", "--ntasks=4", "--kill-on-bad-exit=1", "--exclude=n2,n4"]


def test_a_slurm_that_does_not_answer_changes_nothing(slurm: Path) -> None:
    assert not slurm.exists()
    assert available_ranks(None).n_ranks == 8


def test_elsewhere_one_rank_is_started_unless_asked_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert available_ranks(None).n_ranks == 1
    assert available_ranks(3).n_ranks == 3
    command = launcher(3)
    assert command[1:] == ["-n", "3"]
    assert subprocess.run([command[0], "--version"], capture_output=True, check=False).returncode == 0


def test_the_first_rank_that_ends_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "from orienteer.run.roll_call import answer_roll_call as a; a(); import time; time.sleep({})"
    programs = [
        f"PMI_RANK={rank} {sys.executable} -c '{answer.format(seconds)}' &"
        for rank, seconds in ((0, 6), (1, 3))
    ]
    monkeypatch.setattr(launching, "launcher", lambda *_: ["sh", "-c", f"{' '.join(programs)} wait"])
    ending = launch([], 2)
    assert ending.first is not None
    assert ending.first[0] == 1


@pytest.mark.parametrize("n_ranks", [1, 2])
def test_what_ranks_print_goes_where_it_is_asked_for(
    n_ranks: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launching, "launcher", lambda *_: [])
    held = io.StringIO()
    program = [sys.executable, "-c", "import sys; print('result'); print('word', file=sys.stderr)"]
    assert launch(program, n_ranks, (), held).status == 0
    assert held.getvalue() == "result\n"
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == "word\n"
