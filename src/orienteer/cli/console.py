"""What the command says: text for people, JSON for scripts, one sentence when something is wrong."""

import dataclasses
import errno
import json
import math
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orienteer.compute.atomic import DISK_FULL
from orienteer.errors import OrienteerError, SettingsError
from orienteer.run.signals import RunStopped

INTERRUPTED = 130
# Characters of a path that are shown of one that is too long for any disk.
_LONGEST_NAME = 80
STOPPED = (INTERRUPTED, *(128 + number for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)))
# Typer shows only some of the errors that it raises; this is the base of those for a wrong command line.
UsageError: Any = typer.BadParameter.__base__


class Stopped(SystemExit):
    """The user or the system has stopped the command, and it has said so."""


# Results go to standard output; progress and errors to standard error, so that pipes stay clean.
output = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


def print_json(result: Any) -> None:
    """The result as one JSON document on standard output."""
    print(json.dumps(_plain(result), indent=2, allow_nan=False))


def print_result(
    report: Mapping[str, Any], show: Callable[[], None], as_json: bool, problem: OrienteerError | None = None
) -> None:
    """A result for people or as JSON, and after it the problem with a file of it: numbers are worth more.

    show : prints it for people.
    problem : what went wrong after the result was there; in JSON, it is a part of the one document.
    """
    if not as_json:
        show()
        if problem is not None:
            raise problem
        return
    print_json(report if problem is None else {**report, "error": problem.message, "hint": problem.hint})
    if problem is not None:
        raise Stopped(1)


def _plain(value: Any) -> Any:
    """What JSON does not know, as what it knows; numbers that are not finite become null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(rows: Iterable[Sequence[str]], title: str = "", header: Sequence[str] = ()) -> None:
    """A borderless table; the first column is dim when there is no header."""
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=bool(header),
        pad_edge=False,
    )
    names = header or None
    for row in rows:
        if names is None:
            names = [""] * len(row)
        if not table.columns:
            for i, name in enumerate(names):
                table.add_column(name, style="dim" if i == 0 and not header else "", overflow="fold")
        table.add_row(*(escape(cell) for cell in row))
    output.print(table)


def print_losses(losses: Iterable[str]) -> None:
    """What a format had no place for, said and not dropped in silence."""
    for loss in losses:
        messages.print(f"[yellow]not kept[/] {escape(loss)}")


def run_reporting_errors(command: Callable[[], Any], debug: bool, as_json: bool) -> int:
    """Run a command and turn what goes wrong into a sentence and an exit status.

    0: done; 1: it failed; 2: the command line or the settings are wrong; 130: stopped by the user.
    Typer itself answers a wrong command line, an interrupt and a closed pipe, and leaves with SystemExit.
    """
    try:
        status = command()
        # A command that leaves early (an interrupt, --version) has its exit status as result.
        _say_if_stopped(status)
        return status if isinstance(status, int) else 0
    except UsageError as error:
        _print_error({"error": error.format_message(), "hint": "Try: orienteer --help"}, as_json)
        return int(error.exit_code)
    except Stopped as leaving:
        return int(str(leaving.code))
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 0
        _say_if_stopped(status)
        return status
    except OrienteerError as error:
        if debug:
            messages.print_exception()
        _print_error({"error": error.message, "hint": error.hint}, as_json)
        return 2 if isinstance(error, SettingsError) else 1
    except MemoryError:
        hint = "Give a smaller --batch, fewer pixels or a smaller particle."
        _print_error({"error": "not enough memory for this.", "hint": hint}, as_json)
        return 1
    except Exception as error:
        if debug:
            messages.print_exception()
        if (stop := _stop_behind(error)) is not None:
            messages.print(escape(" ".join(str(stop).split()) or "Stopped."), soft_wrap=True)
            return int(getattr(stop, "exit_status", INTERRUPTED))
        if isinstance(error, OSError) and error.errno in (*DISK_FULL, errno.EFBIG):
            hint = "Make room, or write to another disk."
            _print_error({"error": "the disk is full; nothing was put in place.", "hint": hint}, as_json)
            return 1
        if isinstance(error, PermissionError) and error.filename:
            hint = "Check the permissions of the file, and of the folders that lead to it."
            _print_error({"error": f"{error.filename}: permission denied.", "hint": hint}, as_json)
            return 1
        if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            name = str(error.filename or "")
            shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
            what = (
                "the name is too long" if error.errno == errno.ENAMETOOLONG else "its links lead in circles"
            )
            _print_error({"error": f"{shown}: {what}.", "hint": "Give another path."}, as_json)
            return 1
        what = f"Orienteer has a defect: {type(error).__name__}: {error}"
        hint = "Please report it with the output of the same command and --debug."
        _print_error({"error": what, "hint": hint}, as_json)
        return 1


def _say_if_stopped(status: object) -> None:
    """A signal has ended a command that has nothing to say about it."""
    if status in STOPPED:
        with suppress(OSError):  # the terminal may be gone
            messages.print("Stopped.")


def _stop_behind(error: BaseException | None) -> KeyboardInterrupt | RunStopped | None:
    """The stop that an error was made of: Python wraps one that comes while a class is being made."""
    while error is not None:
        if isinstance(error, (KeyboardInterrupt, RunStopped)):
            return error
        error = error.__cause__
    return None


def _print_error(error: Mapping[str, str], as_json: bool) -> None:
    if as_json:
        print_json(error)
        return
    messages.print(f"[bold red]Error:[/] {escape(error['error'])}", soft_wrap=True)
    if error["hint"]:
        messages.print(escape(error["hint"]), soft_wrap=True)
