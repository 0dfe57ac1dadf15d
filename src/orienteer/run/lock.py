"""One process at a time works on a run.

The lock is an advisory lock of the operating system on the file ``lock``; the system releases it when the
process ends, in whatever way.  On some network file systems such locks work only within one machine, or not
at all.  So the file also names process and machine, and its time is renewed while the process lives: a lock
of another machine is stale if its time is no longer renewed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from orienteer.compute.atomic import unwritable
from orienteer.errors import FileError

NAME = "lock"
# Phasing and validation have locks of their own, because they may go on beside other work on the run.
PHASING, VALIDATION = "phasing.lock", "validation.lock"
RENEW_EVERY_S = 5.0
WATCH_S = 30.0
_NO_LOCKS_HERE = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK)


@dataclass(frozen=True)
class Holder:
    """The process that works, or worked, on a run.

    began : when the process began, in ticks of the system; distinguishes processes with the same number.
    """

    host: str
    pid: int
    began: str

    @classmethod
    def me(cls) -> Holder:
        """This process."""
        return cls(socket.gethostname(), os.getpid(), _began(os.getpid()))

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, on this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive_here(self) -> bool:
        """Whether it is on this machine and lives."""
        began = _began(self.pid)
        return self.is_here and began != "" and began == self.began

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class RunLock:
    """The lock of a run directory, held inside the ``with`` block.

    name : of the file; work that may go on at the same time has another one.
    doing : what only one process may do at a time, for the message.
    """

    def __init__(self, directory: Path, name: str = NAME, doing: str = "working on this run") -> None:
        self.directory = directory
        self.path = directory / name
        self._doing = doing
        self._descriptor = -1
        self._released = threading.Event()

    def __enter__(self) -> Self:
        try:
            self._take()
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._released.clear()
        threading.Thread(target=self._renew, name="orienteer lock", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        descriptor, self._descriptor = self._descriptor, -1
        if _read_holder(descriptor) == Holder.me():  # else another machine took it over as stale
            with suppress(OSError):
                self.path.unlink()
        os.close(descriptor)

    def _take(self) -> None:
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                self._claim(descriptor)
                # The previous holder removes the file when it releases the lock; then the file that we have
                # opened has no name any more, and we open the new one.
                if _is_still_there(self.path, descriptor):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, json.dumps(asdict(Holder.me())).encode("ascii"), 0)
                    self._descriptor = descriptor
                    return
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _claim(self, descriptor: int) -> None:
        """Lock the open file, or refuse because another process works on the run."""
        holder = _read_holder(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except BlockingIOError as error:
            raise self._refusal(holder) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            is_locked = False
        holder = _read_holder(descriptor)
        if holder is None or (holder.is_here and (is_locked or not holder.is_alive_here)):
            return
        if holder.is_here or _is_renewed(self.path):
            raise self._refusal(holder)

    def _refusal(self, holder: Holder | None) -> FileError:
        who = "this very process" if holder == Holder.me() else str(holder or "another process")
        return FileError(
            self.directory,
            f"{who} is already {self._doing}.",
            "Wait for it or stop it (Ctrl-C there), or give another folder.",
        )

    def _renew(self) -> None:
        while not self._released.wait(RENEW_EVERY_S):
            with suppress(OSError):
                os.utime(self.path)


def lock_holder(directory: Path) -> Holder | None:
    """The process that works on the run now, as far as this machine can know; None if there is none."""
    try:
        descriptor = os.open(directory / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        holder = _read_holder(descriptor)
        if holder is None or not holder.is_here:
            return holder
        return holder if holder.is_alive_here else None
    finally:
        os.close(descriptor)


def _is_renewed(path: Path) -> bool:
    """Watch a lock for a while; a process that holds it renews its time."""
    seen = path.stat().st_mtime_ns
    end = time.monotonic() + WATCH_S
    while time.monotonic() < end:
        time.sleep(min(1.0, WATCH_S / 10))
        # Opening the file makes a network file system fetch its time anew.
        with suppress(FileNotFoundError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_mtime_ns != seen:
                return True
    return False


def _read_holder(descriptor: int) -> Holder | None:
    try:
        read: Any = json.loads(os.pread(descriptor, 4096, 0))
        return Holder(str(read["host"]), int(read["pid"]), str(read["began"]))
    except (ValueError, KeyError, TypeError):
        return None


def _is_still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _began(pid: int) -> str:
    """When a process of this machine began, in ticks; empty if there is no such process."""
    try:
        # The name, in brackets, may hold anything; after it come the state and, 19 fields on, the beginning.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""
