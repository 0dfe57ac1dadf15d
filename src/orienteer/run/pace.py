"""Pace: how often a task may be done, from how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# Checkpoints and results may each take this share of the time.
SHARE = 0.02


class Pace:
    """A task that is due when it would take no more than its share of the time since the last one.

    The first time it is due at once: that shows how long it takes, and whether it works at all.
    """

    def __init__(self) -> None:
        self.cost_s = 0.0
        self._ended: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed."""
        return self._ended is None or time.monotonic() - self._ended >= self.cost_s / SHARE

    @contextmanager
    def measured(self, before_s: float = 0.0) -> Iterator[None]:
        """Measure the task, which is done inside the block.  before_s : time already spent preparing it."""
        start = time.monotonic()
        yield
        self._ended = time.monotonic()
        self.cost_s = before_s + self._ended - start
