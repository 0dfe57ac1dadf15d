"""One half of a validation in a process of its own: reconstruct it, orient the sentinels, phase it.

``python -m orienteer.validate.half_process`` reads one line of JSON, works, and ends.  It writes its results
into the folder of the half, as the validating process would.  If that process ends, in whatever way, its end
of the pipe closes, and this one stops as any run does, with everything saved.  When all is done, it reports
so on its standard output, because its end would come later: it takes a while to release the GPU.
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

# The line that a process prints when its work is done.
DONE = b"done"


def work_on_half(
    path: str, half: int, settings: ValidationSettings, phasing: PhaseSettings, device: Any,
    lead: bool = False,
) -> None:  # fmt: skip
    """Reconstruct and phase a half, 1 or 2, of a run.

    path : of the run of all frames, which need not have finished.
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
    if told is not None and len(run.volumes()) == 1:  # several states must be paired first
        phase_half(run, phasing, half_phase_seed(whole.seed, half), device, told.diameter_A)


def main() -> None:
    """Do the work that the line on the standard input describes."""
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
    """Report to the waiting process that all files are written."""
    sys.stdout.buffer.write(DONE + b"\n")
    sys.stdout.flush()


def wake_card() -> None:
    """Load the GPU libraries, which takes long, while the main thread reads frames."""
    cupy = import_cupy()
    if cupy is not None:
        with suppress(Exception):  # a fault of the GPU is reported when it is first needed
            one = cupy.ones((2, 2), dtype=cupy.float32)
            cupy.fft.fftn(one @ one)


def end_with_the_other() -> None:
    """Stop this process when the other end of its standard input closes."""
    while os.read(sys.stdin.fileno(), 1):  # not sys.stdin.read: its lock would still be held at exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
