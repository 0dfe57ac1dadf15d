"""Both halves of a validation at the same time, each in a process of its own, beside the run of all frames.

A GPU has memory for three reconstructions of a few thousand frames, and a single one leaves it idle most of
the time, while the CPU prepares the next piece of work.  The halves need only the settings of the run, so
they can begin together with it::

    run = Run.create(folder, frames)
    with SideBySide.beginning(run) as halves:
        for step in run.iterate(): ...
        found = validate(run, at_work=halves)

If that is not possible, no process is started, and :func:`validate` works on one half after the other.
Halves that lead (``halves_first.py``) are done before the run, not beside it, because it begins with their
map.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
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
from orienteer.validate.half_process import DONE
from orienteer.validate.halves import Halves, begin_halves
from orienteer.validate.halves_first import can_begin_with_halves

if TYPE_CHECKING:
    from orienteer.run.run import Run

_PROGRAM = (sys.executable, "-m", "orienteer.validate.half_process")
_ON_WHOLE = (sys.executable, "-m", "orienteer.validate.whole_process")
# Processes that work at the same time, and the fewest cores that are enough for all of them.
_PROCESSES, _FEWEST_CORES = 3, 6
# Three runs surely fit on a GPU up to this many pixels in all frames; a larger run keeps it busy by itself.
_MOST_PIXELS = 5e8
_PATIENCE_S, _LOOK_EVERY_S, _GLANCE_EVERY_S = 20.0, 0.5, 0.02


class SideBySide:
    """Processes that work on the halves of a run; those that still run are ended after the ``with`` block.

    halves : what they work on; None if nothing was started.
    is_on_whole : whether processes work on the result of the run of all frames, which has finished.
    """

    def __init__(self) -> None:
        self.halves: Halves | None = None
        self._run: Run | None = None
        self._at_work: list[tuple[int, subprocess.Popen[bytes], IO[bytes]]] = []
        self._on_whole: list[tuple[str, subprocess.Popen[bytes], IO[bytes]]] = []
        self.is_on_whole = False

    @classmethod
    def beginning(
        cls, run: Run, settings: ValidationSettings | None = None, phasing: PhaseSettings | None = None,
        device: DeviceName | None = None, lead: bool = False,
    ) -> Self:  # fmt: skip
        """Start the halves of a run, finished or not, if processes of their own make them faster.

        settings, phasing, device : those of the validation that will follow.
        lead : the run waits for the maps of the halves; two more processes get ready for its end.
        """
        begun, device = cls(), run.device if device is None else device
        if can_go_side_by_side(run, device):
            settings = settings or ValidationSettings()
            lead = lead and can_begin_with_halves(run)
            halves = begin_halves(run, settings, device, beside=True, lead=lead)
            begun.start(run, halves, settings, phasing, device)
        return begun

    def start(
        self, run: Run, halves: Halves, settings: ValidationSettings, phasing: PhaseSettings | None,
        device: DeviceName,
    ) -> None:  # fmt: skip
        """Start a process for each half that has not finished."""
        self.halves, self._run = halves, run
        order = {
            "path": str(run.path.absolute()),
            "settings": settings.model_dump(mode="json"),
            # Only what was given: each process adds what its own run has found.
            "phasing": (phasing or PhaseSettings()).model_dump(mode="json", exclude_unset=True),
            "device": device,
            "cores": max(1, usable_cores() // _PROCESSES),
            "lead": halves.lead,
        }
        for number, half in enumerate(halves.runs, start=1):
            if not half.finished:
                self._at_work.append((number, *_started(_PROGRAM, {**order, "half": number})))
        if halves.lead:
            works = ("density", "errors") if settings.replicates else ("density",)
            self._on_whole = [(work, *_started(_ON_WHOLE, {**order, "work": work})) for work in works]

    @property
    def is_at_work(self) -> bool:
        """Whether any process was started that has not been waited for yet."""
        return bool(self._at_work)

    def wait_until(self, is_there: Callable[[], bool]) -> None:
        """Wait until ``is_there`` returns true, or until all processes have ended."""
        while not is_there() and any(process.poll() is None for _, process, _ in self._at_work):
            time.sleep(_GLANCE_EVERY_S)

    def go_on_with_whole(self) -> bool:
        """Let processes phase the finished run of all frames and compute its voxel errors, beside other work.

        Returns whether there are such processes.
        """
        for _, process, _ in self._on_whole:
            _tell_process(process, {})
            self.is_on_whole = True
        return self.is_on_whole

    def wait_for_whole(self, *works: str) -> None:
        """Wait for the processes on the run, or for these works only; warn if one has not done its work."""
        if not self.is_on_whole:
            return
        for one in [one for one in self._on_whole if not works or one[0] in works]:
            self._on_whole.remove(one)
            work, process, words = one
            _wait_for(process, words, f"of the {work} of the run")
        self.is_on_whole = bool(self._on_whole)

    def wait_for_runs(self) -> None:
        """Wait until the runs of the halves, or their processes, have ended; densities may come later."""
        assert self.halves is not None
        for number, process, _ in self._at_work:
            while process.poll() is None and not self.halves.runs[number - 1].finished:
                self._tell()
                time.sleep(_LOOK_EVERY_S)

    def wait(self) -> None:
        """Wait until the processes have done all their work; warn if one has not done its work."""
        while self._at_work:
            number, process, words = self._at_work[0]
            assert process.stdout is not None
            if select.select([process.stdout], [], [], _LOOK_EVERY_S)[0]:
                self._at_work.pop(0)
                _wait_for(process, words, f"of half {number}")
            else:
                self._tell()

    def _tell(self) -> None:
        """Report the progress of the halves; each is expected to take as many iterations as the run."""
        if self.halves is not None and self._run is not None:
            done, expected = sum(half.iteration for half in self.halves.runs), 2 * self._run.iteration
            tell("Iterations of both halves, side by side", done, max(done, expected))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        left = [(process, words) for _, process, words in (*self._at_work, *self._on_whole)]
        for process, _ in left:
            _let_go(process)  # closing its input stops it
        for process, words in left:
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            words.close()
        self._at_work, self._on_whole = [], []


def can_go_side_by_side(run: Run, device: DeviceName) -> bool:
    """Whether processes of their own make the halves faster: on a GPU with enough memory and cores."""
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


def _started(program: Sequence[str], order: dict[str, object]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start a process with its order; returns it, and a file that collects its standard error."""
    words = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the process has ended
    cores, package = str(order["cores"]), str(Path(orienteer.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    process = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=words,
        env={**os.environ, **dict.fromkeys(names, cores), "PYTHONPATH": paths},
        start_new_session=True,
    )
    _tell_process(process, order)
    return process, words


def _wait_for(process: subprocess.Popen[bytes], words: IO[bytes], whose: str) -> None:
    """Wait until a process reports that its work is done, or has ended without that, and warn then.

    The end of a process that is done is not waited for, because it takes a while to release the GPU.
    """
    assert process.stdout is not None
    if any(line.strip() == DONE for line in process.stdout):
        threading.Thread(target=_end, args=(process, words), daemon=True).start()
    else:
        _end(process, words, whose)


def _end(process: subprocess.Popen[bytes], words: IO[bytes], whose: str = "") -> None:
    """Wait until a process has ended and close its pipes; with ``whose``, warn if it has failed."""
    process.wait()
    _let_go(process)
    if process.returncode and whose:
        words.seek(0)
        said = words.read().decode(errors="replace").strip().splitlines() or ["without a message"]
        warnings.warn(
            f"The process {whose} has ended early ({said[-1]}); the rest is done here.", stacklevel=4
        )
    words.close()


def _tell_process(process: subprocess.Popen[bytes], order: dict[str, object]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already; ``_end`` reports why
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    if process.stdout is not None:
        process.stdout.close()
