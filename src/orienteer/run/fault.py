"""The end of a job in which one rank cannot go on: one rank prints why, and no rank is left waiting.

The first rank that notices creates ``fault.json`` in the directory of the run and prints the message; later
ones find the file and print nothing.  The process that has started the job reads the file.  Nothing that was
saved is lost: the last checkpoint is on the disk.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

from orienteer.run.crew import Crew, Failure, RankError
from orienteer.run.signals import RunStopped

NAME = "fault.json"
# A rank that prints nothing waits this long before it ends the job, so that the other one can print.
_SILENCE_S = 2.0
# What went wrong: something that the user can mend, a defect, memory, a rank that hangs or died, a signal.
Kind: TypeAlias = Literal["error", "settings", "defect", "memory", "hang", "death", "signal"]


@dataclass(frozen=True)
class Fault:
    """Why a job has ended.

    rank, host : of the rank that could not go on.
    status : exit status of the job; a launcher may return that of a rank which it has killed instead.
    """

    kind: Kind
    message: str
    hint: str
    rank: int
    host: str
    status: int = 1

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


def print_fault(fault: Fault) -> None:
    """Print on the terminal what has happened."""
    print(fault if fault.kind == "signal" else f"Error: {fault}", file=sys.stderr, flush=True)


# The function that prints a fault; a command replaces it by its own.
speak: Callable[[Fault], None] = print_fault


def end_job(crew: Crew, folder: Path, fault: Fault, before: Callable[[], None]) -> NoReturn:
    """End all ranks with the exit status of the fault; only the first rank that calls this prints its fault.

    before : called by that rank before it prints, such as to write a line in the log.
    """
    is_first = _claim(folder, fault)
    if is_first is None:  # nothing can be written: the leader prints; another rank only if it is still there
        is_first = True
        time.sleep(0 if crew.leads else _SILENCE_S)
    if is_first:
        with suppress(Exception):
            before()
        with suppress(OSError):  # the terminal may be gone
            speak(fault)
    else:
        time.sleep(_SILENCE_S)
    crew.abort(fault.status)
    raise AssertionError("a process that has ended")


def stop_all(crew: Crew, folder: Path) -> Callable[[RunStopped], None] | None:
    """A function by which a signal ends all ranks at once; None for a process that is alone."""
    if crew.is_alone:
        return None

    def stop(stopped: RunStopped) -> None:
        told = stopped.message, stopped.hint
        fault = Fault("signal", *told, crew.rank, crew.host, stopped.exit_status)
        end_job(crew, folder, fault, lambda: None)

    return stop


def fault_of(crew: Crew, error: BaseException, hint: str) -> Fault:
    """An error of this rank as the reason why the job ends.

    hint : how to go on, appended to the hint of the error itself.
    """
    failure = Failure.of(error)
    if isinstance(error, RankError):
        message, advice = error.message, error.hint
    else:
        message, advice = failure.words(crew.name(crew.rank))
    return Fault(failure.kind, message, f"{advice} {hint}".strip(), crew.rank, crew.host)


def record_fault(folder: Path, fault: Fault) -> None:
    """Write the fault for the process that has started the job, which ends by itself."""
    _claim(folder, fault)


def read_fault(folder: Path) -> Fault | None:
    """Why the last job in this directory has ended; None if it succeeded, or left no reason."""
    with suppress(OSError, ValueError, TypeError):
        return Fault(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    return None


def forget_fault(folder: Path) -> None:
    """Remove the fault of the last job, because a new one begins."""
    with suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)


def _claim(folder: Path, fault: Fault) -> bool | None:
    """Whether this rank is the first; None if the file cannot be written."""
    try:
        descriptor = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    except OSError:
        return None
    with suppress(OSError):
        os.write(descriptor, json.dumps(asdict(fault)).encode())
    os.close(descriptor)
    return True
