"""Measure where the time of an iteration goes: code names its parts, and a stopwatch adds up their times.

>>> with Stopwatch() as watch:
...     with part("score"):
...         pass
>>> list(watch.seconds())
['score']
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from orienteer.compute.stage_log import is_logged, logged

_running: ContextVar["Stopwatch | None"] = ContextVar("stopwatch", default=None)


class Stopwatch:
    """Times of the named parts of the work done within it: by the clock on the CPU, by events on the GPU.

    Events are recorded on the stream, so that nothing waits for the GPU before the times are read.
    """

    def __init__(self, on_gpu: bool = False) -> None:
        self.on_gpu = on_gpu
        self._marks: list[tuple[str, Any, Any]] = []

    def __enter__(self) -> "Stopwatch":
        self._token = _running.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _running.reset(self._token)

    def now(self) -> Any:
        """The present moment: an event on the GPU, or the times of the wall clock and of the processors."""
        if not self.on_gpu:
            return time.perf_counter(), time.process_time()
        import cupy

        event = cupy.cuda.Event()
        event.record()
        return event

    def note(self, name: str, start: Any) -> None:
        """The part ``name`` ends here."""
        self._marks.append((name, start, self.now()))

    def seconds(self) -> dict[str, float]:
        """Seconds of every part, in the order in which the parts were first met."""
        return self._sums(0)

    def processor_seconds(self) -> dict[str, float]:
        """Processor time of every part, summed over all threads; on the GPU the same as :meth:`seconds`."""
        return self._sums(1)

    def _sums(self, clock: int) -> dict[str, float]:
        sums: dict[str, float] = {}
        for name, start, end in self._marks:
            sums[name] = sums.get(name, 0.0) + self._between(start, end, clock)
        return sums

    def _between(self, start: Any, end: Any, clock: int) -> float:
        if not self.on_gpu:
            return float(end[clock] - start[clock])
        import cupy

        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / 1000


@contextmanager
def part(name: str) -> Iterator[None]:
    """Add the time of this block to the part ``name`` of the running stopwatch, if there is one."""
    watch = _running.get()
    if watch is None:
        yield
        return
    start = watch.now()
    yield
    watch.note(name, start)


@contextmanager
def batch_stage(name: str, places: Any, on_gpu: bool) -> Iterator[None]:
    """Log the time of this work on a batch of frames, and of its parts, if a log of stages is kept.

    places : (D,) places of the frames in the data set.
    """
    if not is_logged():
        yield
        return
    parts: dict[str, float] = {}
    with logged(name, len(places), int(places[0]) if len(places) else None, parts):
        with Stopwatch(on_gpu) as watch:
            yield
        parts.update(watch.seconds())
