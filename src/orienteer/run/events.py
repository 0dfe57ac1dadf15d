"""The event log of a run: one JSON line per step and per start, stop and end.

Lines are appended; only a run that resumes removes some (``EventLog.cut``).  A line that a kill or a full
disk has cut short is ignored.  The log can be read at any time.
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


# To find the end of a log, at most this much of it is read, however long it is.
_LAST_BYTES = 1 << 20


def read_events(path: Path) -> list[dict[str, Any]]:
    """Every whole line of the log, in order; none if there is no log yet."""
    return [event for _, event in _lines(path) if event is not None]


def read_last_events(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last event and the last step of the log; empty if there is none.

    Only the end of the log is read, backwards, so that the time does not grow with its length.
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
    """Each line with its event; None if it holds none."""
    for line in _content(path).splitlines(keepends=True):
        yield line, _event(line)


def _content(path: Path, last_bytes: int | None = None) -> bytes:
    """The log, or its last bytes; empty if there is no log yet."""
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
    """The log for its one writer, the process that holds the lock of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, iteration: int) -> int:
        """Remove steps after this iteration and broken lines; returns how many steps were removed.

        A run that continues from a checkpoint does these steps again and logs them anew.
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
        """Add a line; if it does not fit on the disk, the log stays as it was."""
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
        """Force every line to the disk, so that a checkpoint is never ahead of the log."""
        if not self.path.exists():
            return
        with writing(self.path):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class NoLog(EventLog):
    """The log for ranks that do not write it."""

    def cut(self, iteration: int) -> int:
        """Do nothing."""
        return 0

    def _append(self, line: dict[str, Any]) -> None:
        pass

    def sync(self) -> None:
        """Do nothing."""


def _is_within(event: dict[str, Any], iteration: int) -> bool:
    number = event.get("iteration")
    return isinstance(number, int) and number <= iteration


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
