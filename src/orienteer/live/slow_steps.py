"""SlowSteps: records slow steps of a worker in the log of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_LONGER_THAN_S = 2.0
# If steps are slow all the time, only the longest step in each such interval is reported.
_TOLD_EVERY_S = 60.0


@dataclass(frozen=True)
class _Step:
    """What was done, how long it took, how much of that was processor time, and when it ended."""

    what: str
    seconds: float
    worked_s: float
    ended_s: float


class SlowSteps:
    """Measures the steps of a loop, and reports those that take long.

    tell : called with "slow" and these facts: ``step``, ``seconds``, ``worked_s`` (the rest was spent waiting
        for a disk or for other processes), ``ended_s`` (unix seconds), ``times`` (slow steps since the last
        report) and ``reason``.
    """

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._longest: _Step | None = None
        self._n_slow = 0
        self._not_before_s = 0.0

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Measure the block; ``what`` : its name in reports."""
        began_s, cpu_s = time.monotonic(), time.process_time()
        yield
        seconds = time.monotonic() - began_s
        # Processor time of all threads: Numba may work in its own threads while this one waits.
        step = _Step(what, seconds, min(seconds, time.process_time() - cpu_s), time.time())
        if step.seconds > _LONGER_THAN_S:
            self._n_slow += 1
            if self._longest is None or step.seconds > self._longest.seconds:
                self._longest = step
        if self._longest is not None and time.monotonic() >= self._not_before_s:
            self._tell("slow", **_facts(self._longest, self._n_slow))
            self._longest, self._n_slow = None, 0
            self._not_before_s = time.monotonic() + _TOLD_EVERY_S


def _facts(step: _Step, times: int) -> dict[str, Any]:
    waited_s = max(0.0, step.seconds - step.worked_s)
    how = f", {waited_s:.0f} s of them waited" if waited_s > step.seconds / 2 else ""
    often = f"; {times} steps were slow since the last such line" if times > 1 else ""
    return {
        "step": step.what,
        "seconds": round(step.seconds, 2),
        "worked_s": round(step.worked_s, 2),
        "ended_s": round(step.ended_s, 2),
        "times": times,
        "reason": f"{step.what} took {step.seconds:.0f} s{how}{often}.",
    }
