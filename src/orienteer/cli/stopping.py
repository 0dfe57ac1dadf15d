"""When a signal stops a command, say in one sentence what was kept, and exit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from rich.markup import escape

from orienteer.cli.console import Stopped, messages
from orienteer.compute.file_stamp import file_stamp
from orienteer.run.signals import RunStopped, stopping_at_once

_BEGINS_ANEW = "The same command starts over."


@contextmanager
def telling_when_stopped(
    message: str, hint: str, end_job: Callable[[RunStopped], None] | None = None
) -> Iterator[None]:
    """Inside the block, a signal ends the work at once and the message is printed.

    If a run in the block stops itself, its own message is printed instead.

    end_job : ends all ranks if there are several.
    """
    try:
        with stopping_at_once(message, hint, end_job):
            yield
    except RunStopped as stopped:
        leave(stopped.exit_status, stopped.message, stopped.hint)


@contextmanager
def telling_what_is_written(*paths: Path | None) -> Iterator[None]:
    """The same for a block that writes files, each completely or not at all; the message says which exist.

    None stands for a file that was not asked for.
    """
    before = {path: file_stamp(path) for path in paths if path is not None}
    try:
        with stopping_at_once("Stopped.", _BEGINS_ANEW):
            yield
    except RunStopped as stopped:
        now = {path: file_stamp(path) for path in before}
        words = ", ".join(f"{path} {_became(before[path], now[path])}" for path in before)
        is_refused = any(before[path] is None and now[path] is not None for path in before)
        hint = "With --overwrite, the same command starts over." if is_refused else _BEGINS_ANEW
        leave(stopped.exit_status, f"Stopped; {words}.", hint)


def leave(status: int, message: str, hint: str = "") -> NoReturn:
    """Say why, and exit with this status."""
    with suppress(OSError):  # the terminal may be gone
        messages.print(escape(f"{message} {hint}".strip()), soft_wrap=True)
    raise Stopped(status) from None


def _became(before: object, now: object) -> str:
    """What happened to a file, judged by its stamps."""
    if now is None:
        return "was not written"
    return "is unchanged" if now == before else "was written"
