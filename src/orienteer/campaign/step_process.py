"""The process of a step: ``python -m orienteer.campaign.step_process FOLDER ATTEMPT COMMAND...``.

It carries out the command, once: of several that are started for the same attempt, one works
and the others leave.  It hands its lock to the command, so that the step counts as alive as long as either
of them lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from orienteer.campaign.attempts import ENDED, LOCK, LOG, RENEW_EVERY_S, read_json
from orienteer.compute.atomic import atomic_path

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
# Somebody who looks whether the lock is held has it for an instant.
_INSTANT_S = 2.0


def carry_out(folder: Path, attempt: int, command: Sequence[str]) -> None:
    """Do an attempt of the step that has this folder, unless it is being done or was done."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    if not _take(lock):
        return
    if int(read_json(folder / ENDED).get("attempt", 0)) >= attempt:
        return
    os.ftruncate(lock, 0)
    os.pwrite(lock, socket.gethostname().encode(), 0)
    with (folder / LOG).open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock],
        )
    for number in _SIGNALS:
        signal.signal(number, lambda received, _: _pass_on(child, received, _))
    while True:
        try:
            status = child.wait(RENEW_EVERY_S)
            break
        except subprocess.TimeoutExpired:
            os.utime(folder / LOCK)
    with atomic_path(folder / ENDED) as temporary:
        temporary.write_text(json.dumps({"attempt": attempt, "status": status}))


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


def _pass_on(child: subprocess.Popen[bytes], number: int, _: FrameType | None) -> None:
    child.send_signal(number)


if __name__ == "__main__":
    carry_out(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
