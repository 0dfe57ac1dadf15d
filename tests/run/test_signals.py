"""Ctrl-C and SIGTERM: a run is saved and left within seconds, and says how to resume."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orienteer.run import signals
from orienteer.run.checkpoint import LAST, read_checkpoint
from orienteer.run.run import Run
from orienteer.run.signals import RunInterrupted, RunStopped, RunTerminated, StopRequests


def start(runs: SimpleNamespace, path: Path, **settings: Any) -> subprocess.Popen[str]:
    """A program that works on a run; it has done at least two steps."""
    given = [f"{key}={value}" for key, value in settings.items()]
    program = [sys.executable, str(runs.program), str(path), *given]
    child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert [child.stdout.readline(), child.stdout.readline()] == ["1\n", "2\n"]
    return child


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_program_saves_its_last_step_and_leaves(
    number: signal.Signals, status: int, runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path
) -> None:
    wanted = uninterrupted(steps=30)
    path, slow = tmp_path / "run", tmp_path / "slow"
    slow.touch()
    # Slow enough for the signal to come within a step, and not after the last, on a busy machine as well.
    settings: dict[str, Any] = {"steps": 30, "step_s": 1.0, "slow_from": 3, "slow_while": str(slow)}
    child = start(runs, path, **{**settings, "slow_while": repr(str(slow))})
    time.sleep(0.3)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == status
    kept = read_checkpoint(path / LAST).iteration
    assert errors == (
        f"Stopped; everything up to iteration {kept} is kept.\nThe same command resumes the run in {path}.\n"
    )
    slow.unlink()
    run = runs.make(path, **settings)
    assert run.events[-1]["event"] == "stopped"
    assert run.events[-1]["signal"] == number
    assert run.events[-1]["iteration"] == run.iteration == read_checkpoint(path / LAST).iteration
    assert run.holder is None
    list(run.iterate())
    assert runs.outcome(path) == wanted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("kept", [0, 2])
def test_a_signal_in_the_set_up_says_that_the_run_is_begun(
    number: signal.Signals, kept: int, runs: SimpleNamespace, tmp_path: Path
) -> None:
    slow, path = tmp_path / "slow", tmp_path / "run"
    settings: dict[str, Any] = {"steps": 5, "setup_s": 30.0, "slow_while": str(slow)}
    list(runs.make(path, **settings).iterate(kept))
    slow.touch()
    given = [f"{key}={value!r}" for key, value in settings.items()]
    program = [sys.executable, str(runs.program), str(path), *given]
    child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (path / "lock").exists():
        time.sleep(0.01)
    time.sleep(0.1)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    what = f"everything up to iteration {kept} is kept" if kept else "its folder is begun"
    assert errors == (
        f"Stopped while the run was set up; {what}.\nThe same command resumes the run in {path}.\n"
    )
    assert child.returncode == 128 + number
    slow.unlink()
    run = runs.make(path, **settings)
    assert run.holder is None
    assert [step.iteration for step in run.iterate()][-1] == 5


def test_many_interrupts_are_one_message(runs: SimpleNamespace, tmp_path: Path) -> None:
    child = start(runs, tmp_path / "run", steps=9, slow_from=3, step_s=3.0)
    for _ in range(4):
        time.sleep(0.35)
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert errors.count("Stopped") == 1
    assert "Traceback" not in errors
    assert child.returncode == 130


def send_later(*pauses_s: float, number: int = signal.SIGINT) -> None:
    def send() -> None:
        for pause in pauses_s:
            time.sleep(pause)
            os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()


def test_a_long_step_is_given_up_and_done_again(
    runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "STEP_SHARE", 0.03)
    wanted = uninterrupted(steps=3)
    slow = tmp_path / "slow"
    slow.touch()
    run = runs.make(tmp_path / "run", steps=3, slow_from=3, step_s=30, slow_while=str(slow))
    loop = run.iterate()
    assert [next(loop).iteration, next(loop).iteration] == [1, 2]
    send_later(0.1)
    began = time.monotonic()
    with pytest.raises(RunInterrupted, match=r"given up; everything up to iteration [12] is kept") as caught:
        next(loop)
    assert time.monotonic() - began < 10
    slow.unlink()
    assert caught.value.exit_status == 130
    assert run.events[-1]["abandoned"] is True
    assert [step.iteration for step in run.iterate()][-1] == 3
    assert runs.outcome(tmp_path / "run") == wanted


def test_a_second_interrupt_leaves_at_once(runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path) -> None:
    wanted = uninterrupted(steps=2)
    slow = tmp_path / "slow"
    slow.touch()
    run = runs.make(tmp_path / "run", steps=2, slow_from=2, step_s=30, slow_while=str(slow))
    loop = run.iterate()
    next(loop)
    send_later(0.1, 0.4)
    began = time.monotonic()
    with pytest.raises(RunInterrupted, match="Stopped at once; everything up to iteration 1 is kept"):
        next(loop)
    assert time.monotonic() - began < signals.NOTICE_S * signals.STEP_SHARE
    slow.unlink()
    assert run.holder is None
    assert run.events[-1]["event"] == "stopped"
    assert run.events[-1]["abandoned"] is True
    list(run.iterate())
    assert runs.outcome(tmp_path / "run") == wanted


def test_two_signals_in_a_row_are_one(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = runs.make(tmp_path / "run", steps=9, slow_from=2, step_s=0.4)
    loop = run.iterate()
    next(loop)
    send_later(0.1, 0.02)
    with pytest.raises(RunInterrupted, match="Stopped; everything up to iteration 2 is kept"):
        next(loop)


def test_a_second_sigterm_does_not_hurry(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = runs.make(tmp_path / "run", steps=9, slow_from=2, step_s=0.9)
    loop = run.iterate()
    next(loop)
    send_later(0.1, 0.5, number=signal.SIGTERM)
    with pytest.raises(RunTerminated, match="Stopped; everything up to iteration 2 is kept") as caught:
        next(loop)
    assert (caught.value.exit_status, caught.value.code) == (143, 143)
    assert isinstance(caught.value, RunStopped)


def test_saving_that_takes_too_long_is_left_out(
    runs: SimpleNamespace, uninterrupted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orienteer.run import session

    settings: dict[str, Any] = {"steps": 4, "state_s": 0.3, "step_s": 0.2}
    wanted = uninterrupted(steps=4)
    monkeypatch.setattr(session, "SAVING_SHARE", 0.01)
    run = runs.make(tmp_path / "run", **settings)
    loop = run.iterate()
    assert [next(loop).iteration, next(loop).iteration] == [1, 2]
    send_later(0.05)
    with pytest.raises(RunInterrupted, match="everything up to iteration 1 is kept"):
        next(loop)
    assert run.iteration == 3
    list(run.iterate())
    assert runs.outcome(tmp_path / "run") == wanted


def test_a_signal_in_the_last_step_lets_the_run_finish(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = runs.make(tmp_path / "run", steps=2, slow_from=2, step_s=0.3)
    loop = run.iterate()
    next(loop)
    send_later(0.1)
    with pytest.raises(RunInterrupted, match="the run has just finished"):
        next(loop)
    assert run.finished
    assert run.events[-1]["event"] == "finished"


def test_the_handlers_of_others_are_put_back(runs: SimpleNamespace, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    for _ in runs.make(tmp_path / "run", steps=3).iterate():
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopRequests() as stop:
            signal.raise_signal(signal.SIGINT)
        assert not stop.is_requested
    finally:
        signal.signal(signal.SIGINT, ignored)


def test_a_run_works_in_any_thread(runs: SimpleNamespace, tmp_path: Path) -> None:
    thread = threading.Thread(target=lambda: list(runs.make(tmp_path / "run", steps=3).iterate()))
    thread.start()
    thread.join()
    assert Run.open(tmp_path / "run").finished


def test_an_interrupt_between_two_steps_saves_what_was_done(runs: SimpleNamespace, tmp_path: Path) -> None:
    def plot() -> None:
        for step in runs.make(tmp_path / "run").iterate():
            if step.iteration == 7:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        plot()
    assert not isinstance(caught.value, RunStopped)
    del caught
    assert next(runs.make(tmp_path / "run").iterate()).iteration == 8
