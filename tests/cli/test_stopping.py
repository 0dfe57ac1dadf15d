"""Ctrl-C and its kin at the command line: one message wherever it comes, and no traceback."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orienteer.run import signals


@pytest.mark.parametrize(("number", "n_sent"), [(signal.SIGINT, 1), (signal.SIGINT, 3), (signal.SIGHUP, 1)])
def test_a_stopped_set_up_is_one_message(run: Any, frames: Path, number: signal.Signals, n_sent: int) -> None:
    command = [sys.executable, "-m", "orienteer", "reconstruct", str(frames), "--out", "run"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not Path("run/lock").exists():
        assert child.poll() is None
        time.sleep(0.002)
    for _ in range(n_sent):
        child.send_signal(number)
        time.sleep(0.05)
    _, said = child.communicate(timeout=60)
    # One that comes when Python itself is leaving ends it like any other program.
    assert child.returncode in (128 + number, -number if n_sent > 1 else None), said
    stopped = [line for line in said.splitlines() if "Stopped" in line]
    assert len(stopped) == 1
    assert "The same command" in stopped[0]
    assert "Traceback" not in said


# A command line whose first import takes its time.
SLOW = """
import builtins, runpy, time
own = builtins.__import__
def load(name, *rest, **options):
    if name == "orienteer.cli.main":
        print("loading", flush=True)
        time.sleep(20)
    return own(name, *rest, **options)
builtins.__import__ = load
runpy.run_module("orienteer", run_name="__main__")
"""


def test_ctrl_c_before_the_program_has_loaded_is_the_same_one_word() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "loading\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert said == "Stopped.\n"


STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]


@pytest.fixture
def stopped_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a function of the program be met by a signal; one of an earlier test is forgotten."""
    monkeypatch.setattr(signals, "_heard_at_s", -math.inf)

    def prepare(name: str, number: signal.Signals, then: Callable[..., Any] = lambda *_, **__: None) -> None:
        def met(*arguments: Any, **options: Any) -> Any:
            os.kill(os.getpid(), number)
            time.sleep(0.01)  # where Python hears it
            return then(*arguments, **options)

        monkeypatch.setattr(name, met)

    return prepare


@pytest.fixture
def stopped_after_a_batch(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, signal.Signals], None]:
    """Makes a command that goes through frames be met by a signal after the first of them."""
    monkeypatch.setattr(signals, "_heard_at_s", -math.inf)

    def prepare(command: str, number: signal.Signals) -> None:
        def track(items: Iterable[Any], *_: Any, **__: Any) -> Iterator[Any]:
            for item in items:
                yield item
                os.kill(os.getpid(), number)
                time.sleep(0.01)

        monkeypatch.setattr(f"orienteer.cli.{command}.track", track)

    return prepare


@pytest.mark.parametrize("number", STOPS)
def test_a_stopped_simulation_says_that_nothing_was_written(
    run: Any, stopped_after_a_batch: Any, number: signal.Signals
) -> None:
    stopped_after_a_batch("simulate", number)
    line = ["simulate", "sphere", "--frames", 3, "--set", "detector.pixels=8", "--out", "a.h5"]
    told = run(*line, "--batch", 1)
    assert told.status == 128 + number
    assert told.errors.strip() == "Stopped; a.h5 was not written. The same command starts over."
    assert not list(Path().iterdir())


@pytest.mark.parametrize("command", ["simulate", "hits", "convert"])
def test_a_stopped_command_says_that_an_older_file_is_left_as_it_was(
    run: Any, frames: Path, stopped_after_a_batch: Any, command: str
) -> None:
    Path("older.h5").write_bytes(b"older")
    stopped_after_a_batch(command, signal.SIGTERM)
    line = {
        "simulate": ["sphere", "--frames", 2, "--set", "detector.pixels=8", "--out", "older.h5"],
        "hits": [frames, "--out", "older.h5", "--no-find", "--table", "shots.csv"],
        "convert": [frames, "older.h5"],
    }[command]
    told = run(command, *line, "--overwrite")
    assert told.status == 143
    assert "Stopped; older.h5 is unchanged" in told.errors
    assert ("shots.csv was not written" in told.errors) == (command == "hits")
    assert Path("older.h5").read_bytes() == b"older"


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("command", ["inspect", "convert", "plan", "status", "compare"])
def test_every_other_command_says_that_it_was_stopped(
    run: Any, frames: Path, stopped_in: Any, number: signal.Signals, command: str
) -> None:
    stopped_in(
        {
            "inspect": "orienteer.cli.inspect.kind_of",
            "convert": "orienteer.cli.convert.kind_of",
            "plan": "orienteer.cli.plan.open_patterns",
            "status": "orienteer.cli.status.find_runs",
            "compare": "orienteer.cli.compare.open_comparable",
        }[command],
        number,
    )
    others = {"convert": ["b.h5"], "compare": [frames]}.get(command, [])
    told = run(command, frames, *others)
    assert told.status == 128 + number
    assert told.errors.startswith("Stopped")
    assert len(told.errors.strip().splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_goes_on_with_no_other_command(
    run: Any, stopped_in: Any, number: signal.Signals
) -> None:
    stopped_in("orienteer.particle.settings.particle_from_settings", number)
    told = run("demo", "--out", "here")
    assert told.status == 128 + number
    assert [line.split()[2] for line in told.errors.splitlines() if line.startswith("$")] == ["simulate"]
    assert "frames.h5 was not written" in " ".join(told.errors.split())


def test_a_demo_that_is_stopped_between_its_commands_says_how_it_goes_on(run: Any, stopped_in: Any) -> None:
    stopped_in("orienteer.cli.demo.carry_out", signal.SIGTERM)
    told = run("demo", "--out", "here")
    assert told.status == 143
    assert told.errors.strip() == "Stopped; what is done is kept in here. The same command continues."
