"""Supervise: start the ranks of a run again after a fault, from the last checkpoint, as long as that helps.

Faults that the user has to mend are not tried again: wrong settings, missing data, a full disk.  After a rank
has died, hung, run out of memory or met a defect, the run is started again, on as many ranks as are available
then.  It is given up if the same fault returns before another checkpoint was made: it would return for ever.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orienteer.compute.words import counted
from orienteer.errors import FileError
from orienteer.run.checkpoint import saved_iteration
from orienteer.run.events import EventLog
from orienteer.run.fault import Fault, forget_fault, read_fault
from orienteer.run.files import EVENTS
from orienteer.run.launch import Ending, Lost

RESTARTS = 3
# Give up after this many starts in a row that have not reached another checkpoint.
_WITHOUT_PROGRESS = 3
# Give up sooner if a defect, or a lack of memory, has come this often with the same message and checkpoint.
_ALIKE = 2
_REPEATABLE = ("death", "hang", "memory", "defect")
_PAUSE_S = 1.0
# A batch system sends its signals to the ranks themselves, which save and leave; they must not be restarted.
_TOLD_TO_LEAVE = tuple(
    128 + number for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT)
)


@dataclass(frozen=True)
class _Failure:
    iteration: int
    fault: Fault


def supervise(
    folder: Path, start: Callable[[], Ending], restarts: int, say: Callable[[str], None],
    saved: Callable[[Path], int] = saved_iteration,
) -> tuple[int, str]:  # fmt: skip
    """Start the job again and again until it succeeds or is given up.

    folder : of the run.
    start : starts all ranks and waits for them.
    say : prints what is done.
    saved : returns the iteration from which another start would go on; 0: from the beginning.
    Returns the exit status, and why the job was given up, or "".
    """
    failures: list[_Failure] = []
    while True:
        forget_fault(folder)
        ending = start()
        if ending.status == 0 or ending.signal:
            # srun and mpiexec return statuses of their own for jobs that have received a signal.
            return 128 + ending.signal if ending.status else 0, ""
        if ending.status in _TOLD_TO_LEAVE:
            return ending.status, ""
        fault = read_fault(folder)
        if fault is not None and fault.kind == "signal":
            return fault.status, ""
        if fault is None and ending.lost:
            fault = _fault_of_lost(ending.lost[0], ending.first)
            _note(folder, fault)
            say(f"{fault.message} {fault.hint}")
        if fault is None or fault.kind not in _REPEATABLE:
            is_unexplained = fault is None and ending.said and not ending.n_lines
            return (
                ending.status,
                f"The ranks could not be started: {ending.said[0]}" if is_unexplained else "",
            )
        failures.append(_Failure(saved(folder), fault))
        if why := _why_not_again(failures, restarts):
            return 1, why
        kept = failures[-1].iteration
        again = f"from iteration {kept}" if kept else "from the beginning"
        say(f"Starting again {again} (restart {len(failures)} of {restarts}).")
        time.sleep(_PAUSE_S)


def _why_not_again(failures: list[_Failure], restarts: int) -> str:
    """Why another start would not help; "" if it may."""
    last = failures[-1]
    row = 0
    for failure in reversed(failures):
        if failure.iteration != last.iteration:
            break
        row += 1
    where = f"iteration {last.iteration}" if last.iteration else "the first checkpoint"
    place = f"after {where}" if last.iteration else f"before {where}"
    alike = [each for each in failures[-row:] if _cause(each.fault) == _cause(last.fault)]
    if last.fault.kind in ("defect", "memory") and len(alike) >= _ALIKE:
        return f"The run is not started again: the same fault has come twice {place}."
    if row >= _WITHOUT_PROGRESS:
        return f"The run is not started again: {row} starts in a row have ended {place}, without progress."
    if len(failures) > restarts:
        if not restarts:
            return "The run is not started again: no restart was allowed (--restarts)."
        allowed = counted(restarts, "restart was", "restarts were")
        return f"The run is not started again: {allowed} allowed, and all are used."
    return ""


def _cause(fault: Fault) -> tuple[str, str]:
    """What two faults must share to count as the same one; the rank may differ."""
    return fault.kind, fault.message.partition(": ")[2]


def _fault_of_lost(lost: Lost, first: tuple[int, str] | None) -> Fault:
    """The fault that describes a lost rank.

    lost : what the launcher reports, which may be a rank that it has ended only afterwards.
    first : the rank that really ended first and its host; None if that is not known.
    """
    rank, host = first or (lost.rank, lost.host)
    who = f"rank {rank} on {host}" if rank is not None else f"process {lost.pid} on {host}"
    hint = ""
    if "killed" in lost.what.lower():
        hint = "The system kills a process when memory is full; or a person has killed it."
    return Fault("death", f"{who} {lost.what}.", hint, -1 if rank is None else rank, host)


def _note(folder: Path, fault: Fault) -> None:
    """Log the death of a rank, because no rank is left to do so."""
    log = EventLog(folder / EVENTS)
    if log.path.exists():
        with suppress(FileError):
            log.append("failed", iteration=saved_iteration(folder), reason=fault.message, rank=fault.rank)
