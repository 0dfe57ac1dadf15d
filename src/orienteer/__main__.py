"""The ``orienteer`` command, also as ``python -m orienteer``; Ctrl-C works even while it is still loading."""

import os
import signal
from types import FrameType


def start() -> None:
    """Run the command line; until it has loaded, Ctrl-C ends it at once, with the same message as later."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.default_int_handler:  # otherwise the caller, such as nohup, has set a handler
        signal.signal(signal.SIGINT, _leave)
    from orienteer.cli.main import main

    signal.signal(signal.SIGINT, before)
    try:
        main()
    finally:
        # Python restores the system's Ctrl-C handler at exit: a second Ctrl-C would replace the exit status.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(number: int, _: FrameType | None) -> None:
    """Exit at once: nothing has begun that needs cleaning up, and an import could swallow an exception."""
    os.write(2, b"Stopped.\n")
    os._exit(128 + number)


if __name__ == "__main__":
    start()
