"""The steps of a run as columns; only new lines of a growing log are read."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from orienteer.dashboard.roots import Roots

MOST_STEPS = 20_000
_MOST_LOGS = 64
_BLOCK_BYTES = 1 << 20
_LONGEST_LINE = 4 << 20
# Limits for logs that are not ours: only the last bytes of a log, and the first numbers of a step, are read.
_MOST_BYTES, _MOST_NUMBERS = 1 << 30, 100


@dataclass
class _Read:
    """What was read of a log: which file, up to which byte, and the numbers of each step."""

    file: tuple[int, int] = (-1, -1)
    end: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)


class StepLogs:
    """The numbers of the steps of runs; those of the logs read last are cached, in bounded memory."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._read: OrderedDict[Path, _Read] = OrderedDict()
        self._guard = threading.Lock()

    def columns(self, path: Path, after: int = 0) -> dict[str, Any]:
        """The numbers of all steps after an iteration, one list per name, and the whole last step.

        path : of ``events.jsonl``.  Values that a step does not have are None.
        """
        with self._guard:
            read = self._read.pop(path, _Read())
            self._read[path] = read
            while len(self._read) > _MOST_LOGS:
                self._read.popitem(last=False)
            if path.exists():
                self._go_on(path, read)
            steps = [step for step in read.steps if step["iteration"] > after]
            names = list(dict.fromkeys(name for step in steps for name in step))
            columns: dict[str, Any] = {name: [step.get(name) for step in steps] for name in names}
            return {"iteration": [], **columns, "last": read.last}

    def _go_on(self, path: Path, read: _Read) -> None:
        with self._roots.open(path) as file:
            found = os.fstat(file.fileno())
            # A run that continues from a checkpoint replaces its log by a new file, with another inode.
            if (found.st_dev, found.st_ino) != read.file or found.st_size < read.end:
                read.file, read.end = (found.st_dev, found.st_ino), 0
                read.steps, read.last = [], {}
            read.end = max(read.end, found.st_size - _MOST_BYTES)
            file.seek(read.end)
            rest = b""
            while block := file.read(_BLOCK_BYTES):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    self._take(line, read)
                    read.end += len(line) + 1
                if len(rest) > _LONGEST_LINE:  # no line of ours is that long
                    read.end += len(rest)
                    rest = b""

    @staticmethod
    def _take(line: bytes, read: _Read) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict) or event.get("event") != "step":
            return
        iteration = event.get("iteration")
        if not isinstance(iteration, int) or isinstance(iteration, bool):
            return
        numbers = (
            (name, value)
            for name, value in event.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        )
        read.steps.append({"iteration": iteration, **dict(islice(numbers, _MOST_NUMBERS))})
        read.last = event
        del read.steps[:-MOST_STEPS]
