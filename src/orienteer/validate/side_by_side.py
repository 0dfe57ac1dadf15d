"""Both halves of a validation at once, each in a process of its own, beside the run of all frames.

A card has room for three reconstructions of a few thousand frames, and each of them leaves it idle most of
the time while it prepares the next piece of work.  The halves need nothing of the run but its settings, so
that they can begin with it::

    run = Run.create(folder, frames)
    with SideBySide.beginning(run) as halves:
        for step in run.iterate(): ...
        found = validate(run, at_work=halves)

Where they cannot, nothing is started, and :func:`validate` works on one half after the other.  Halves that
lead (``halves_first.py``) are not worked on beside the run, but before it: it begins with what they find.
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
from orienteer.validate.half_phasing import phase_settings_for
from orienteer.validate.half_process import DONE
from orienteer.validate.halves import Halves, begin_halves
from orienteer.validate.halves_first import can_begin_with_halves

if TYPE_CHECKING:
    from orienteer.run.run import Run

_PROGRAM = (sys.executable, "-m", "orienteer.validate.half_process")
_ON_WHOLE = (sys.executable, "-m", "orienteer.validate.whole_process")
# Processes at work at the same time, and the fewest cores of which each still has enough.
_PROCESSES, _FEWEST_CORES = 3, 6
# Pixels of all frames up to which three runs surely fit on a card; more of them keep it busy anyway.
_MOST_PIXELS = 5e8
_PATIENCE_S, _LOOK_EVERY_S, _GLANCE_EVERY_S = 20.0, 0.5, 0.02


class SideBySide:
    """Processes that work on the halves of a run; leaving the ``with`` block ends those that are left.

    halves : what they work on; None where nothing was started.
    is_on_whole : whether processes are at work on the run of all frames, which has come to its end.
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
        """Begin with the halves of a run that may still have to be worked on, where that is of use.

        settings, phasing, device : those that the validation will be asked for with.
        lead : the run waits for what the halves find; two more processes make themselves ready for its end.
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
        """Start a process for each half that has not come to its end."""
        self.halves, self._run = halves, run
        order = {
            "path": str(run.path.absolute()),
            "settings": settings.model_dump(mode="json"),
            "phasing": phase_settings_for(run, phasing).model_dump(mode="json"),
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
        """Whether processes were started that have not been waited for."""
        return bool(self._at_work)

    def wait_until(self, is_there: Callable[[], bool]) -> None:
        """Wait until something is there that the processes make, or until all of them have ended."""
        while not is_there() and any(process.poll() is None for _, process, _ in self._at_work):
            time.sleep(_GLANCE_EVERY_S)

    def go_on_with_whole(self) -> bool:
        """Let the run of all frames, which has come to its end, be phased beside what comes next.

        The errors of its voxels are found there, too.  Returns whether there are processes that do so.
        """
        for _, process, _ in self._on_whole:
            _tell_process(process, {})
            self.is_on_whole = True
        return self.is_on_whole

    def wait_for_whole(self, *works: str) -> None:
        """Wait until that is done, or these parts of it; what a process has left undone is told."""
        if not self.is_on_whole:
            return
        for one in [one for one in self._on_whole if not works or one[0] in works]:
            self._on_whole.remove(one)
            work, process, words = one
            _wait_for(process, words, f"of the {work} of the run")
        self.is_on_whole = bool(self._on_whole)

    def wait_for_runs(self) -> None:
        """Wait until the runs of the halves are over, or their processes; densities may still be to come."""
        assert self.halves is not None
        for number, process, _ in self._at_work:
            while process.poll() is None and not self.halves.runs[number - 1].finished:
                self._tell()
                time.sleep(_LOOK_EVERY_S)

    def wait(self) -> None:
        """Wait until the processes have done all their work; what one has left undone is told."""
        while self._at_work:
            number, process, words = self._at_work[0]
            assert process.stdout is not None
            if select.select([process.stdout], [], [], _LOOK_EVERY_S)[0]:
                self._at_work.pop(0)
                _wait_for(process, words, f"of half {number}")
            else:
                self._tell()

    def _tell(self) -> None:
        """Say how far the halves are; as many iterations are expected of each as the run itself took."""
        if self.halves is not None and self._run is not None:
            done, expected = sum(half.iteration for half in self.halves.runs), 2 * self._run.iteration
            tell("Iterations of both halves, side by side", done, max(done, expected))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        left = [(process, words) for _, process, words in (*self._at_work, *self._on_whole)]
        for process, _ in left:
            _let_go(process)  # which stops it
        for process, words in left:
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            words.close()
        self._at_work, self._on_whole = [], []


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


def _started(program: Sequence[str], order: dict[str, object]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A process with its order, and what it says on its standard error."""
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
    """Wait until a process says that its work is done, or has ended without a word, and tell that.

    One that is done is not waited for any longer: it takes a while to let go of a card.
    """
    assert process.stdout is not None
    if any(line.strip() == DONE for line in process.stdout):
        threading.Thread(target=_end, args=(process, words), daemon=True).start()
    else:
        _end(process, words, whose)


def _end(process: subprocess.Popen[bytes], words: IO[bytes], whose: str = "") -> None:
    """Let go of a process that ends, and tell what one has left undone that somebody waits for."""
    process.wait()
    _let_go(process)
    if process.returncode and whose:
        words.seek(0)
        said = words.read().decode(errors="replace").strip().splitlines() or ["it says nothing"]
        warnings.warn(
            f"The process {whose} has ended early ({said[-1]}); the rest is done here.", stacklevel=4
        )
    words.close()


def _tell_process(process: subprocess.Popen[bytes], order: dict[str, object]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already; whoever waits for it is told why
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    if process.stdout is not None:
        process.stdout.close()
