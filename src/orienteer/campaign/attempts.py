"""What became of a step, from its folder alone: it has ended, its process is alive, or it is gone.

| file | contents |
|---|---|
| ``lock`` | locked while the process of the step or its child lives; its modification time is renewed |
| ``output.log`` | output of the command |
| ``ended.json`` | number and exit status of the attempt |

If a worker is killed, its steps go on, and the next worker finds them by these files.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orienteer.campaign.names import printable
from orienteer.compute.atomic import unwritable

# The program that the arguments of a step are for.
PROGRAM = [sys.executable, "-m", "orienteer"]
_PROCESS = [sys.executable, "-m", "orienteer.campaign.step_process"]
LOCK, LOG, ENDED = "lock", "output.log", "ended.json"
RENEW_EVERY_S = 5.0
# A lock of another machine may not be visible here; it counts as free if it was not renewed for this long.
STALE_S = 90.0
# Checking whether the lock is held takes it for an instant; wait this long before believing that it is taken.
_INSTANT_S = 2.0


@dataclass(frozen=True)
class Standing:
    """The state of an attempt; status : its exit status if it has ended."""

    state: Literal["ended", "alive", "gone"]
    status: int = 0


@contextmanager
def beginning(folder: Path) -> Iterator[int | None]:
    """The lock of a step that is about to begin; None if another process has it.

    The process of the step inherits the lock, so that the lock is held at every instant of a running step,
    whichever process is killed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        yield lock if _take(lock) else None
    finally:
        os.close(lock)


def start(
    folder: Path, attempt: int, arguments: Sequence[str], works_in: Path, lock: int
) -> subprocess.Popen[bytes]:
    """Begin an attempt in a separate process, which may outlive the worker; lock : from ``beginning``."""
    try:
        works_in.mkdir(parents=True, exist_ok=True)
        os.ftruncate(lock, 0)
        os.pwrite(lock, socket.gethostname().encode(), 0)
        return subprocess.Popen(
            [*_PROCESS, str(folder.absolute()), str(attempt), str(lock), *PROGRAM, *arguments],
            cwd=works_in,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lock],
        )
    except OSError as error:
        raise unwritable(folder, error) from error


def look(folder: Path, attempt: int) -> Standing:
    """What became of an attempt."""
    if attempt == 0:
        return Standing("gone")
    # Look at the lock first: a process writes how it ended before it releases the lock.
    is_held = _is_held(folder / LOCK)
    ended = read_json(folder / ENDED)
    if ended.get("attempt") == attempt:
        return Standing("ended", int(ended["status"]))
    return Standing("alive" if is_held else "gone")


def last_words(folder: Path) -> str:
    """The error that the command has printed, or its last line."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("Error:", '"error":'))]
    words = (told or lines or [""])[-1]
    return printable(words.removeprefix("Error:").removeprefix('"error":').strip().strip('",'))[:500]


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is none."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _take(lock: int) -> bool:
    end = time.monotonic() + _INSTANT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
        except OSError:  # a file system without locks
            return True
        time.sleep(0.05)


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        host = os.pread(descriptor, 200, 0).decode(errors="replace")
        age_s = time.time() - os.fstat(descriptor).st_mtime
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return time.time() - path.stat().st_mtime < STALE_S
    finally:
        os.close(descriptor)
    return host not in ("", socket.gethostname()) and age_s < STALE_S
