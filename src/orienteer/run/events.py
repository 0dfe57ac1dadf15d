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


def read_events(path: Path, last_bytes: int | None = None) -> list[dict[str, Any]]:
    """Every whole line of the log, in order; none when there is no log yet.

    last_bytes : read only so much of its end.
    """
    return [event for _, event in _lines(path, last_bytes) if event is not None]


def _lines(path: Path, last_bytes: int | None = None) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Each line with what it says; None for what is no event."""
    if not path.exists():
        return
    with reading(path, "event log"), path.open("rb") as file:
        if last_bytes is not None:
            file.seek(max(0, os.fstat(file.fileno()).st_size - last_bytes))
        content = file.read()
    for line in content.splitlines(keepends=True):
        try:
            event = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError):
            event = None
        yield line, event if isinstance(event, dict) and "event" in event else None


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
