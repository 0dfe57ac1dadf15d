"""Both halves of a validation at once, each in a process of its own, beside the run of all frames.

A card has room for three reconstructions of a few thousand frames, and each of them leaves it idle most of
the time while it prepares the next piece of work.  The halves need nothing of the run but its settings, so
that they can begin with it::

    run = Run.create(folder, frames)
    with SideBySide.beginning(run) as halves:
        for step in run.iterate(): ...
        found = validate(run, at_work=halves)

Where they cannot, nothing is started, and :func:`validate` works on one half after the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

import orienteer
from orienteer.compute.arrays import DeviceName, choose_device
from orienteer.compute.machine import usable_cores
from orienteer.compute.progress import tell
from orienteer.phase.settings import PhaseSettings
from orienteer.run.crew import crew
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.half_phasing import phase_settings_for

if TYPE_CHECKING:
    from orienteer.run.run import Run
    from orienteer.validate.validation import Halves

_PROGRAM = (sys.executable, "-m", "orienteer.validate.half_process")
# Processes at work at the same time, and the fewest cores of which each still has enough.
_PROCESSES, _FEWEST_CORES = 3, 6
# Pixels of all frames up to which three runs surely fit on a card; more of them keep it busy anyway.
_MOST_PIXELS = 5e8
_PATIENCE_S, _LOOK_EVERY_S = 20.0, 0.5


class SideBySide:
    """Processes that work on the halves of a run; leaving the ``with`` block ends those that are left.

    halves : what they work on; None where nothing was started.
    """

    def __init__(self) -> None:
        self.halves: Halves | None = None
        self._run: Run | None = None
        self._at_work: list[tuple[int, subprocess.Popen[bytes], IO[bytes]]] = []

    @classmethod
    def beginning(
        cls, run: Run, settings: ValidationSettings | None = None, phasing: PhaseSettings | None = None,
        device: DeviceName | None = None,
    ) -> Self:  # fmt: skip
        """Begin with the halves of a run that may still have to be worked on, where that is of use.

        settings, phasing, device : those that the validation will be asked for with.
        """
        from orienteer.validate.validation import begin_halves

        begun, device = cls(), run.device if device is None else device
        if can_go_side_by_side(run, device):
            settings = settings or ValidationSettings()
            begun.start(run, begin_halves(run, settings, device, beside=True), settings, phasing, device)
        return begun

    def start(
        self, run: Run, halves: Halves, settings: ValidationSettings, phasing: PhaseSettings | None,
        device: DeviceName,
    ) -> None:  # fmt: skip
        """Start a process for each half that has not come to its end."""
        self.halves, self._run = halves, run
        order = {
            "path": str(run.path.absolute()),
            "settings": settings.model_dump(mode="json"),
            "phasing": phase_settings_for(run, phasing).model_dump(mode="json"),
            "device": device,
            "cores": max(1, usable_cores() // _PROCESSES),
        }
        for number, half in enumerate(halves.runs, start=1):
            if not half.finished:
                self._at_work.append((number, *_started({**order, "half": number})))

    def wait(self) -> None:
        """Wait until the processes have come to their end; what one has left undone is told."""
        while self._at_work:
            number, process, words = self._at_work[0]
            try:
                process.wait(_LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                self._tell()
                continue
            self._at_work.pop(0)
            _let_go(process)
            if process.returncode:
                words.seek(0)
                said = words.read().decode(errors="replace").strip().splitlines() or ["it says nothing"]
                warnings.warn(
                    f"The process of half {number} has ended early ({said[-1]}); the rest is done here.",
                    stacklevel=2,
                )
            words.close()

    def _tell(self) -> None:
        """Say how far the halves are; as many iterations are expected of each as the run itself took."""
        if self.halves is not None and self._run is not None:
            done, expected = sum(half.iteration for half in self.halves.runs), 2 * self._run.iteration
            tell("Iterations of both halves, side by side", done, max(done, expected))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for _, process, _ in self._at_work:
            _let_go(process)  # which stops it
        for _, process, words in self._at_work:
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            words.close()
        self._at_work = []


def can_go_side_by_side(run: Run, device: DeviceName) -> bool:
    """Whether halves gain by processes of their own: on a card that has room, with cores that feed it."""
    source, section = run.source, run.settings
    return (
        choose_device(device) == "cuda"
        and crew().is_alone
        and usable_cores() >= _FEWEST_CORES
        and source.path is not None
        and source.n_frames is not None
        and float(source.n_frames) * source.n_pixels <= _MOST_PIXELS
        and (run.finished or getattr(section, "models", 1) != "auto")
    )


def _started(order: dict[str, object]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A process with its order, and what it says on its standard error."""
    words = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the process has ended
    cores, package = str(order["cores"]), str(Path(orienteer.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    process = subprocess.Popen(
        _PROGRAM,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=words,
        env={**os.environ, **dict.fromkeys(names, cores), "PYTHONPATH": paths},
        start_new_session=True,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already; whoever waits for it is told why
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    return process, words


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
