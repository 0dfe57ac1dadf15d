"""The ``orienteer`` command, also as ``python -m orienteer``: it can be stopped while it still loads."""

import signal


def start() -> None:
    """Run the command line; until it has loaded, Ctrl-C ends it without a word."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.default_int_handler:  # else somebody else decides, such as nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from orienteer.cli.main import main

    signal.signal(signal.SIGINT, before)
    main()


if __name__ == "__main__":
    start()
