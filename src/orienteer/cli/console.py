"""What a command prints: text for people, JSON for scripts, one sentence when something is wrong."""

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
# How many characters to show of a path that is too long for the file system.
_LONGEST_NAME = 80
STOPPED = (INTERRUPTED, *(128 + number for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)))
# The base class of all errors about a wrong command line; Typer does not export it.
UsageError: Any = typer.BadParameter.__base__


class Stopped(SystemExit):
    """The user or the system has stopped the command, and the message about it is printed already."""


# Results go to standard output; progress and errors to standard error, so that pipes stay clean.
output = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


def print_json(result: Any) -> None:
    """Print the result as one JSON document on standard output."""
    print(json.dumps(_plain(result), indent=2, allow_nan=False))


def print_result(
    report: Mapping[str, Any], show: Callable[[], None], as_json: bool, problem: OrienteerError | None = None
) -> None:
    """Print a result for people or as JSON, then report a file that could not be written: numbers come first.

    show : prints it for people.
    problem : what went wrong after the result was computed; with JSON, it goes into the same document.
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
    """Convert to types that JSON knows; numbers that are not finite become null."""
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
    """Print a borderless table; the first column is dim when there is no header."""
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
    """Print what the output format could not store."""
    for loss in losses:
        messages.print(f"[yellow]not kept[/] {escape(loss)}")


def run_reporting_errors(command: Callable[[], Any], debug: bool, as_json: bool) -> int:
    """Run a command and turn an error into a sentence and an exit status.

    0: done; 1: it failed; 2: the command line or the settings are wrong; 130: stopped by the user.
    Without --json, Typer itself handles a wrong command line, an interrupt and a closed pipe by SystemExit.
    """
    try:
        status = command()
        # If a command exits early (an interrupt, --version), its result is the exit status.
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
        hint = "Use a smaller --batch, fewer pixels or a smaller particle."
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
            _print_error({"error": "the disk is full; the file was not written.", "hint": hint}, as_json)
            return 1
        if isinstance(error, PermissionError) and error.filename:
            hint = "Check the permissions of the file and of the folders above it."
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
        hint = "Please report it with the output of the same command with --debug."
        _print_error({"error": what, "hint": hint}, as_json)
        return 1


def _say_if_stopped(status: object) -> None:
    """Print "Stopped." if a signal ended a command that prints nothing about it itself."""
    if status in STOPPED:
        with suppress(OSError):  # the terminal may be gone
            messages.print("Stopped.")


def _stop_behind(error: BaseException | None) -> KeyboardInterrupt | RunStopped | None:
    """The stop that caused an error: Python wraps one that is raised while a class is being created."""
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
