"""One half of a validation in a process of its own: it is reconstructed, asked about the sentinels, phased.

``python -m orienteer.validate.half_process`` reads one line of JSON, works, and ends.  What it has found lies
in the folder of the half, as if the process that validates had done it.  When that one ends in whatever way,
its end of the pipe closes, and this one stops as any run does, with everything kept.  When all is done it
says so on its standard output: to let go of a card takes a while, for which nobody has to wait.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any

from orienteer.compute.arrays import import_cupy
from orienteer.compute.machine import limit_cores
from orienteer.phase.settings import PhaseSettings
from orienteer.run.files import VALIDATION
from orienteer.run.method import Method
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.half_phasing import half_phase_seed, phase_half
from orienteer.validate.half_sets import split
from orienteer.validate.halves import said_at_end
from orienteer.validate.kept_models import kept_model

# What a process says when its work is done.
DONE = b"done"


def work_on_half(
    path: str, half: int, settings: ValidationSettings, phasing: PhaseSettings, device: Any,
    lead: bool = False,
) -> None:  # fmt: skip
    """Bring a half, 1 or 2, of a run to its density.

    path : of the run of all frames, which need not have come to its end.
    lead : whether that run waits for the map of this half.
    """
    whole = Run.open(path)
    parts = split(whole.source, settings.sentinels)
    run = Run.open(whole.path / VALIDATION / f"half_{half}", parts[half - 1])
    run.device = device

    def ask(method: Method) -> None:
        said_at_end(run, method, parts.sentinels, lead)

    run.when_finished = ask
    for _ in run.iterate():
        pass
    told = kept_model(run, parts.sentinels)
    if told is not None and len(run.volumes()) == 1:  # of several states, all of them say which is which
        phase_half(run, phasing, half_phase_seed(whole.seed, half), device, told.diameter_A)


def main() -> None:
    """Do what the line on the standard input says."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_the_other, daemon=True).start()
    if order["device"] != "cpu":
        threading.Thread(target=wake_card, daemon=True).start()
    limit_cores(int(order["cores"]))
    work_on_half(
        order["path"],
        int(order["half"]),
        ValidationSettings(**order["settings"]),
        PhaseSettings(**order["phasing"]),
        order["device"],
        bool(order["lead"]),
    )
    say_done()


def say_done() -> None:
    """Tell whoever waits that all files are there."""
    sys.stdout.buffer.write(DONE + b"\n")
    sys.stdout.flush()


def wake_card() -> None:
    """Load what takes long before a card does its first work; meanwhile frames are read and looked at."""
    cupy = import_cupy()
    if cupy is not None:
        with suppress(Exception):  # whoever needs the card says what is wrong with it
            one = cupy.ones((2, 2), dtype=cupy.float32)
            cupy.fft.fftn(one @ one)


def end_with_the_other() -> None:
    """Stop this process when the other end of its standard input closes."""
    while os.read(sys.stdin.fileno(), 1):  # not through Python's buffer, whose lock would outlive the others
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
