"""Where the time of an iteration goes: parts of the work name themselves, and a stopwatch adds them up.

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
    """Time of each named part of the work done within it: on the CPU by the clock, on the GPU by its events.

    Parts on the GPU are timed on the stream, so that nothing waits for them before the end.
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
        """A mark of this moment: an event on the GPU, or the times of wall clock and processors."""
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
        """The same in time of the processors, all threads together; on the GPU as :meth:`seconds`."""
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
    """Count what is done here as part ``name`` of the stopwatch that is running, if one is."""
    watch = _running.get()
    if watch is None:
        yield
        return
    start = watch.now()
    yield
    watch.note(name, start)


@contextmanager
def batch_stage(name: str, places: Any, on_gpu: bool) -> Iterator[None]:
    """Note what is done here to a batch of frames, with its parts, in the log of stages, if one is kept.

    places : (D,) of the frames in the data set.
    """
    if not is_logged():
        yield
        return
    parts: dict[str, float] = {}
    with logged(name, len(places), int(places[0]) if len(places) else None, parts):
        with Stopwatch(on_gpu) as watch:
            yield
        parts.update(watch.seconds())
