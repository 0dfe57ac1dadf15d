"""Ctrl-C at the command line: one message wherever it comes, and no traceback."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


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
