"""Continue a run: ``python -m orienteer.dashboard.resuming FOLDER``.

Everything needed is in the folder, so that no command has to be stored or trusted.
"""

import signal
import sys
from pathlib import Path
from types import FrameType

from orienteer.errors import OrienteerError
from orienteer.run.run import Run
from orienteer.run.signals import RunStopped, stopping_at_once


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def resume(folder: Path) -> int:
    """Continue the run in a folder to its end; returns the exit status."""
    try:
        with stopping_at_once("Stopped.", "It can go on."):
            run = Run.open(folder)
            for step in run.iterate():
                print(f"iteration {step.iteration}", flush=True)
    except RunStopped as stopped:
        print(stopped, flush=True)
        return int(stopped.exit_status)
    except OrienteerError as error:
        print(error, flush=True)
        return 1
    print("Finished.", flush=True)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)
    sys.exit(resume(Path(sys.argv[1])))
