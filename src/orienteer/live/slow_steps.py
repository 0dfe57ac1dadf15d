"""SlowSteps: what a worker was at when it took long, told in the log of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_LONGER_THAN_S = 2.0
# Where steps are slow all the time, the longest of each so many seconds is told.
_TOLD_EVERY_S = 60.0


@dataclass(frozen=True)
class _Step:
    """What was done, how long it took, how much of that time it had a processor, and when it was over."""

    what: str
    seconds: float
    worked_s: float
    ended_s: float


class SlowSteps:
    """Measures the steps of a loop, and tells of those that take long.

    tell : is given "slow" and the facts: ``step``, ``seconds``, ``worked_s`` (the rest was spent waiting, for
        a disk or for other processes), ``ended_s`` (unix seconds), ``times`` (slow steps since the last time)
        and ``reason``.
    """

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._longest: _Step | None = None
        self._n_slow = 0
        self._not_before_s = 0.0

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Measure what is done inside of the block."""
        began_s, cpu_s = time.monotonic(), time.process_time()
        yield
        seconds = time.monotonic() - began_s
        # Of all threads: Numba may do the work in threads of its own, while this one waits for them.
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
    often = f"; {times} steps were slow since it was said last" if times > 1 else ""
    return {
        "step": step.what,
        "seconds": round(step.seconds, 2),
        "worked_s": round(step.worked_s, 2),
        "ended_s": round(step.ended_s, 2),
        "times": times,
        "reason": f"{step.what} took {step.seconds:.0f} s{how}{often}.",
    }
