"""The ``orienteer`` command, also as ``python -m orienteer``: it can be stopped while it still loads."""

import os
import signal
from types import FrameType


def start() -> None:
    """Run the command line; until it has loaded, Ctrl-C ends it at once, in the same word as later."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.default_int_handler:  # else somebody else decides, such as nohup
        signal.signal(signal.SIGINT, _leave)
    from orienteer.cli.main import main

    signal.signal(signal.SIGINT, before)
    try:
        main()
    finally:
        # Python gives Ctrl-C back to the system while it leaves: one more would take the exit status away.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(number: int, _: FrameType | None) -> None:
    """Nothing has begun, so that nothing is to be put in order; an exception could get lost in an import."""
    os.write(2, b"Stopped.\n")
    os._exit(128 + number)


if __name__ == "__main__":
    start()
