"""The event log of a run: one JSON line per step and per start, stop and end; only ever appended to.

A line that was torn by a kill or a full disk is no line.  Whoever reads the log may do so at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orienteer.compute.atomic import atomic_path
from orienteer.compute.plain_json import json_line, plain
from orienteer.compute.reading import reading, writing

STEP = "step"


# Where the end of a log is asked for, no more than this of it is read, however long it has become.
_LAST_BYTES = 1 << 20


def read_events(path: Path) -> list[dict[str, Any]]:
    """Every whole line of the log, in order; none when there is no log yet."""
    return [event for _, event in _lines(path) if event is not None]


def read_last_events(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last event and the last step of the log; empty where there is none.

    Only its end is looked at, from the last line on, which takes no longer for a log of any length.
    """
    last: dict[str, Any] = {}
    for line in reversed(_content(path, _LAST_BYTES).splitlines(keepends=True)):
        event = _event(line)
        if event is None:
            continue
        last = last or event
        if event["event"] == STEP:
            return last, event
    return last, {}


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Each line with what it says; None for what is no event."""
    for line in _content(path).splitlines(keepends=True):
        yield line, _event(line)


def _content(path: Path, last_bytes: int | None = None) -> bytes:
    """The log, or so much of its end; nothing when there is none yet."""
    if not path.exists():
        return b""
    with reading(path, "event log"), path.open("rb") as file:
        if last_bytes is not None:
            file.seek(max(0, os.fstat(file.fileno()).st_size - last_bytes))
        return file.read()


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "event" in event else None


class EventLog:
    """The log as its one writer sees it; only the process that holds the lock of the run makes one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, iteration: int) -> int:
        """Take out the steps beyond this iteration and what is no event; how many steps were taken out.

        A run that continues from a checkpoint does these steps again and writes their lines anew.
        """
        kept: list[bytes] = []
        n_lines = n_steps = 0
        for line, event in _lines(self.path):
            n_lines += 1
            if event is None:
                continue
            if event["event"] == STEP and not _is_within(event, iteration):
                n_steps += 1
                continue
            kept.append(line)
        if len(kept) < n_lines:
            with atomic_path(self.path) as temporary:
                temporary.write_bytes(b"".join(kept))
        return n_steps

    def append(self, event: str, **facts: Any) -> None:
        """Add a line; one that does not fit on the disk leaves the log as it was."""
        self._append({"event": event, "time": _now(), **facts})

    def append_step(self, step: Any) -> None:
        """Add the line of a step."""
        self._append({"event": STEP, "time": _now(), **plain(step)})

    def _append(self, line: dict[str, Any]) -> None:
        content = memoryview(json_line(line))
        with writing(self.path):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                end = os.fstat(descriptor).st_size
                try:
                    while content:
                        content = content[os.write(descriptor, content) :]
                except OSError:
                    os.ftruncate(descriptor, end)
                    raise
            finally:
                os.close(descriptor)

    def sync(self) -> None:
        """Bring every line to the disk, so that a checkpoint never knows more than the log."""
        if not self.path.exists():
            return
        with writing(self.path):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class NoLog(EventLog):
    """The log as ranks see it that do not write it."""

    def cut(self, iteration: int) -> int:
        """Nothing."""
        return 0

    def _append(self, line: dict[str, Any]) -> None:
        pass

    def sync(self) -> None:
        """Nothing."""


def _is_within(event: dict[str, Any], iteration: int) -> bool:
    number = event.get("iteration")
    return isinstance(number, int) and number <= iteration


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
