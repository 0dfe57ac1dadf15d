"""Crew: the ranks that work on one run together, and how they agree.

Rank 0 leads: it reads settings, holds the lock, writes the directory and prints messages; the others follow.
Work that may fail goes through :meth:`Crew.by_leader` or :meth:`Crew.together`, which raise the error of one
rank on all ranks, so that every rank leaves in the same way.  A rank that fails while others wait for it in a
different collective can no longer agree with them; :mod:`orienteer.run.fault` ends the whole job then.

>>> Crew.alone().by_leader(lambda: 3)
3
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar

from orienteer.compute.ranks.launchers import is_launched, load_mpi, n_launched
from orienteer.errors import FileError, OrienteerError, SettingsError
from orienteer.run.roll_call import answer_roll_call

T = TypeVar("T")
# How long a failed rank waits for the others to join the exchange of errors, before it ends the job alone.
PATIENCE_S = 3.0
# How long a rank that leaves waits for the others to leave as well.
_DOOR_S = 30.0
_POLL_S = (0.0, 0.0002, 0.002)


FailureKind: TypeAlias = Literal["error", "settings", "memory", "defect"]


class OthersAreElsewhere(Exception):  # noqa: N818 - a state of affairs
    """The other ranks cannot learn of the failure of this one: they wait for it in a different collective."""


class RankError(OrienteerError):
    """Another rank has met a defect, or has run out of memory.

    kind : which of the two.
    """

    def __init__(self, kind: FailureKind, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.kind = kind


@dataclass(frozen=True)
class Failure:
    """An error of one rank in a form that can be sent to other ranks."""

    kind: FailureKind
    message: str
    hint: str
    path: str
    reason: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure that describes any error."""
        if isinstance(error, RankError):
            return cls(error.kind, error.message, error.hint, "", "")
        if isinstance(error, OrienteerError):
            path, reason = (error.path, error.reason) if isinstance(error, FileError) else ("", "")
            kind: FailureKind = "settings" if isinstance(error, SettingsError) else "error"
            return cls(kind, error.message, error.hint, path, reason)
        if isinstance(error, MemoryError):
            return cls("memory", "not enough memory for this.", "", "", "")
        return cls("defect", f"{type(error).__name__}: {error}", "", "", "")

    def words(self, who: str) -> tuple[str, str]:
        """Message and hint of this failure, as an error of the rank ``who``."""
        if self.kind == "memory":
            hint = "Start fewer ranks on each node, or give a smaller memory_GiB."
            return f"{who} has run out of memory.", hint
        if self.kind == "defect":
            hint = "Please report it with the output of the same command and --debug."
            return f"Orienteer has a defect, which showed on {who}: {self.message}", hint
        return f"{self.message.rstrip('.')} ({who}).", self.hint

    def error(self, where: str) -> Exception:
        """The same error, to be raised on another rank.

        where : rank and host, to be added to the message; "" to add nothing.
        """
        told = f" ({where})" if where else ""
        if self.kind in ("defect", "memory"):
            return RankError(self.kind, *self.words(where or "the first rank"))
        if self.path:
            return FileError(self.path, self.reason.rstrip(".") + told + ".", self.hint)
        kind = SettingsError if self.kind == "settings" else OrienteerError
        return kind(self.message.rstrip(".") + told + ".", self.hint)


class Crew:
    """Ranks 0 to ``size`` - 1, of which this process is ``rank``.

    world : a communicator of mpi4py; None for a process that works alone.
    """

    def __init__(self, world: Any = None) -> None:
        self._world: Any = None if world is None or world.Get_size() == 1 else world.Dup()
        # Ranks that leave use a communicator of their own, so that no other collective gets their message.
        self._door: Any = None if self._world is None else self._world.Dup()
        self.rank = 0 if self._world is None else int(self._world.Get_rank())
        self.size = 1 if self._world is None else int(self._world.Get_size())
        self.host = socket.gethostname()
        self.members = self.everyone((self.host, os.getpid()))

    @classmethod
    def alone(cls) -> Crew:
        """One process."""
        return cls()

    @property
    def leads(self) -> bool:
        """Whether this rank reads, writes and prints for all."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there are no other ranks."""
        return self.size == 1

    def name(self, rank: int) -> str:
        """A rank and its host, for messages.

        >>> Crew.alone().name(0).startswith("rank 0 on ")
        True
        """
        return f"rank {rank} on {self.members[rank][0]}"

    def everyone(self, value: T) -> list[T]:
        """The value of each rank, in the order of ranks."""
        if self._world is None:
            return [value]
        self._statuses(self._world, 0, None)
        return list(self._world.allgather(value))

    def from_leader(self, value: T | None) -> T:
        """The value of the leader, on every rank."""
        if self._world is not None:
            self._statuses(self._world, 0, None)
            value = self._world.bcast(value)
        return value  # type: ignore[return-value]

    def by_leader(self, work: Callable[[], T]) -> T:
        """Let the leader do the work; all ranks get its result, or its error."""
        if self._world is None:
            return work()
        done: T | None = None
        failure: Failure | None = None
        error: Exception | None = None
        if self.leads:
            try:
                done = work()
            except Exception as raised:
                error, failure = raised, Failure.of(raised)
        answer: tuple[Any, Failure | None] = self.from_leader((done, failure))
        if error is not None:
            raise error
        if answer[1] is not None:
            raise answer[1].error("")
        return answer[0]  # type: ignore[no-any-return]

    def together(self, work: Callable[[], T]) -> T:
        """Let every rank do the work and get its own result; an error of any rank is raised on all.

        Work may contain collectives.  If a rank fails while the others wait for it in one, it raises
        ``OthersAreElsewhere`` from its error.
        """
        return self._together(work, PATIENCE_S)

    def side_by_side(self, work: Callable[[], T]) -> T:
        """The same for work without collectives: a failed rank waits for the others as long as they need."""
        return self._together(work, None)

    def _together(self, work: Callable[[], T], patience_s: float | None) -> T:
        if self._world is None:
            return work()
        try:
            done = work()
        except Exception as error:
            self.agree(failed=True, error=error, patience_s=patience_s)
            raise
        self.agree()
        return done

    def agree(
        self,
        number: int = 0,
        *,
        failed: bool = False,
        error: Exception | None = None,
        patience_s: float | None = PATIENCE_S,
    ) -> int:
        """The largest number of any rank; an error of any rank is raised on all ranks that had none.

        failed : this rank has an error, which its caller raises once the others know.
        patience_s : how long a failed rank waits for the others; None: for ever.
        """
        if self._world is None:
            return number
        found = self._statuses(self._world, -1 if failed else number, patience_s if failed else None)
        if found is None:
            raise OthersAreElsewhere from error
        if min(found) < 0:
            failures = self.everyone(None if error is None else Failure.of(error))
            if not failed:
                first, failure = next((r, f) for r, f in enumerate(failures) if f is not None)
                raise failure.error(self.name(first))
        return max(found)

    def all_leave(self) -> bool:
        """Whether all ranks reach the end; False if some are still at work after a while."""
        return self._door is None or self._statuses(self._door, 0, _DOOR_S) is not None

    def _statuses(self, line: Any, status: int, limit_s: float | None) -> Sequence[int] | None:
        """The status of every rank; None if some do not join within the limit."""
        import numpy as np

        own, found = np.array([status], np.int64), np.zeros(self.size, np.int64)
        request = line.Iallgather(own, found)
        end = None if limit_s is None else time.monotonic() + limit_s
        n_tries = 0
        # Polled with pauses: waiting ranks leave their core to working ones, and Python can handle signals.
        while not request.Test():
            if end is not None and time.monotonic() > end:
                return None
            time.sleep(_POLL_S[min(n_tries // 50, len(_POLL_S) - 1)])
            n_tries += 1
        return [int(each) for each in found]

    def abort(self, status: int) -> None:
        """End all ranks at once with this exit status."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self._world is not None:
            # If MPI hangs in its own abort, the timer ends this process.
            stuck = threading.Timer(5.0, os._exit, (status,))
            stuck.daemon = True
            stuck.start()
            self._world.Abort(status)
        os._exit(status)


@cache
def crew() -> Crew:
    """All ranks that were started with this one; a process without a launcher is alone and loads no MPI."""
    if not is_launched():
        return Crew.alone()
    answer_roll_call()
    # One rank prints why the job ends; a message of MPI on top would only confuse.
    os.environ.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")
    MPI = load_mpi()
    if MPI.COMM_WORLD.Get_size() == 1 and n_launched() > 1:
        raise OrienteerError(
            f"{n_launched()} ranks were started, but each is alone: their launcher belongs to another MPI.",
            "Use the mpiexec of the MPI that 'python -m mpi4py --mpi-lib-version' names, or srun --mpi=pmi2.",
        )
    return Crew(MPI.COMM_WORLD)
