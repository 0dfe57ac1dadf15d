"""A run that is killed at any instant, again and again, ends in the same state as one that is left alone."""

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orienteer.run import checkpoint, directory, events
from orienteer.run.run import Run

# The steps alone take 0.24 s, so that two kills within 0.15 s hit the run on any machine.
SETTINGS: dict[str, Any] = {"steps": 8, "step_s": 0.03, "models": 2, "dragonfly_output": True}


def carry_out(runs: SimpleNamespace, path: Path) -> None:
    for _ in runs.make(path, **SETTINGS).iterate():
        pass


@pytest.fixture(scope="module")
def wanted(runs: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcome of a run that nobody killed."""
    path = tmp_path_factory.mktemp("alone") / "run"
    carry_out(runs, path)
    outcome: dict[str, Any] = runs.outcome(path)
    return outcome


def is_finished(path: Path) -> bool:
    return (path / "run.json").exists() and Run.open(path).finished


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_instants_a_run_ends_the_same(
    seed: int, runs: SimpleNamespace, wanted: dict[str, Any], tmp_path: Path
) -> None:
    draw = random.Random(seed)
    path = tmp_path / "run"
    fork = multiprocessing.get_context("fork")
    n_killed = 0
    while not is_finished(path):
        child = fork.Process(target=carry_out, args=(runs, path))
        child.start()
        child.join(draw.uniform(0.0, 0.15 if n_killed < 2 else 0.4))
        child.kill()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        n_killed += child.exitcode != 0
        assert n_killed < 200
    assert n_killed >= 2
    assert runs.outcome(path) == wanted


# Every place where a file gets its name, or loses it.
PLACES = [
    (checkpoint.os, "replace"),
    (checkpoint.os, "fsync"),
    (events.os, "write"),
    (directory.Path, "unlink"),
]


@pytest.mark.parametrize("first_call", range(1, 5))
def test_killed_between_any_two_files_a_run_ends_the_same(
    first_call: int, runs: SimpleNamespace, wanted: dict[str, Any], tmp_path: Path
) -> None:
    """A kill by the clock seldom falls between two renamings; here it is aimed there."""
    path = tmp_path / "run"
    n_killed = 0
    while not is_finished(path):
        child = os.fork()
        if child == 0:
            calls_left = first_call + 4 * n_killed  # later and later, so that the run comes to its end

            def counted(function: Any) -> Any:
                def call(*arguments: Any, **options: Any) -> Any:
                    nonlocal calls_left
                    calls_left -= 1
                    if calls_left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return function(*arguments, **options)

                return call

            status = 1
            try:
                for module, name in PLACES:
                    setattr(module, name, counted(getattr(module, name)))
                carry_out(runs, path)
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        n_killed += status != 0
    assert n_killed >= 3
    assert runs.outcome(path) == wanted


def test_the_lock_of_a_killed_process_is_nobodys(runs: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "run"
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=lambda: list(runs.make(path, step_s=0.01, steps=10_000).iterate()))
    child.start()
    while not (path / checkpoint.LAST).exists():
        time.sleep(0.01)
    child.kill()
    child.join()
    assert (path / "lock").exists()
    run = runs.make(path, step_s=0.01, steps=10_000)
    assert run.holder is None
    assert next(run.iterate()).iteration > 1
