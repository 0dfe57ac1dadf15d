"""The ``orienteer`` command, also as ``python -m orienteer``: it can be stopped while it still loads."""

import signal


def start() -> None:
    """Run the command line; until it has loaded, Ctrl-C ends it without a word."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.default_int_handler:  # else somebody else decides, such as nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from orienteer.cli.main import main

    signal.signal(signal.SIGINT, before)
    try:
        main()
    finally:
        # Python gives Ctrl-C back to the system while it leaves: one more would take the exit status away.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    start()
