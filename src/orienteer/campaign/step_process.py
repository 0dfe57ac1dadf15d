"""The process of a step: ``python -m orienteer.campaign.step_process FOLDER ATTEMPT LOCK COMMAND...``.

It runs the command and records its exit status.  The lock of the step, a descriptor inherited from the
worker, is passed on to the command: the step counts as alive as long as this process or the command lives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from orienteer.campaign.attempts import ENDED, LOCK, LOG, RENEW_EVERY_S
from orienteer.compute.plain_json import write_json

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


def carry_out(folder: Path, attempt: int, lock: int, command: Sequence[str]) -> None:
    """Run one attempt of the step with this folder and lock."""
    with (folder / LOG).open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock],
        )
    for number in _SIGNALS:
        signal.signal(number, lambda received, _: child.send_signal(received))
    while True:
        try:
            status = child.wait(RENEW_EVERY_S)
            break
        except subprocess.TimeoutExpired:
            os.utime(folder / LOCK)
    write_json(folder / ENDED, {"attempt": attempt, "status": status})


if __name__ == "__main__":
    carry_out(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
