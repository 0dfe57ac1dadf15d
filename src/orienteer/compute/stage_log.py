"""Where the time of every rank goes: each rank keeps a log of the named stages of its work.

The log of a rank is ``events_rank_NNN.jsonl`` beside the events of the run, one JSON line per stage::

    {"iteration":3,"stage":"orient","start":1763236209.1,"seconds":0.52,"frames":512,"first":1024,
     "parts":{"score":0.31,"merge":0.12}}

``start`` is in seconds since 1970, so that the logs of several machines can be laid side by side.  ``frames``
is how many frames the stage was for, ``first`` the place of the first of them in the data set, ``items`` how
many pieces of work this rank has claimed of those that several ranks share, and ``parts`` how long the named
parts of the work took; what is 0 or unknown is left out.  A process that begins to work writes one line with
the stage "begin", its rank, how many ranks there are, and its host.

Stages that waste time have names of their own, which say why: "read" (frames come from disk or host memory),
"wait" (other ranks are late, or the network is slow), "save" (checkpoints and results).

>>> with StageLog(rank=0) as log, logged("orient", frames=10):
...     pass
>>> [line["stage"] for line in log.lines]
['begin', 'orient']
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from orienteer.compute.plain_json import json_line
from orienteer.compute.reading import writing

T = TypeVar("T")
_running: ContextVar["StageLog | None"] = ContextVar("stage_log", default=None)
# Stages shorter than this are joined with the one before, if it had the same name: a log stays small.
_SHORT_S = 0.01


def log_name(rank: int) -> str:
    """The name of the log of a rank, in the directory of the run.

    >>> log_name(7)
    'events_rank_007.jsonl'
    """
    return f"events_rank_{rank:03d}.jsonl"


class StageLog:
    """Stages of one rank; inside the block they are noted, and :meth:`write` appends them to its file.

    path : directory of the run; None: stages are kept in ``lines`` alone.
    clock : function that gives seconds, such as processor time if others use the processors, too.
    iteration : iteration of the stages that are noted from now on, counted from 1; its owner sets it.
    The owner calls :meth:`write` once per iteration: a thousand ranks must not overload the file system.
    """

    def __init__(
        self, path: Path | None = None, rank: int = 0, n_ranks: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        self.path = None if path is None else path / log_name(rank)
        self.clock = clock
        self.iteration = self.n_items = 0
        self.lines: list[dict[str, Any]] = [
            {
                "iteration": 0, "stage": "begin", "start": time.time(), "seconds": 0.0, "rank": rank,
                "ranks": n_ranks, "host": socket.gethostname(), "process": os.getpid(),
            }
        ]  # fmt: skip

    def __enter__(self) -> "StageLog":
        self._token = _running.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _running.reset(self._token)

    def note(
        self, stage: str, start: float, seconds: float, frames: int = 0, first: int | None = None,
        parts: dict[str, float] | None = None, items: int = 0,
    ) -> None:  # fmt: skip
        """Note a stage that is over.  start : seconds since 1970; first : place of the first frame."""
        last = self.lines[-1] if self.lines else None
        if last is not None and _can_be_joined(last, stage, self.iteration, seconds, start):
            last["seconds"] = start + seconds - last["start"]
            for key, number in (("frames", frames), ("items", items)):
                if number:
                    last[key] = last.get(key, 0) + number
            for name, value in (parts or {}).items():
                own = last.setdefault("parts", {})
                own[name] = own.get(name, 0.0) + value
            return
        line: dict[str, Any] = {
            "iteration": self.iteration, "stage": stage, "start": start, "seconds": seconds,
        }  # fmt: skip
        if frames:
            line["frames"] = int(frames)
            if first is not None:
                line["first"] = int(first)
        if items:
            line["items"] = items
        if parts:
            line["parts"] = dict(parts)
        self.lines.append(line)

    def write(self) -> None:
        """Append what was noted to the file and forget it; without a file it is kept."""
        if self.path is None or not self.lines:
            return
        content = b"".join(json_line(_rounded(line)) for line in self.lines)
        with writing(self.path), self.path.open("ab") as file:
            file.write(content)
        self.lines = []


@contextmanager
def logged(
    name: str, frames: int = 0, first: int | None = None, parts: dict[str, float] | None = None
) -> Iterator[None]:
    """Note the work inside the block as a stage of the current log, if there is one.

    parts : filled inside the block with how long the named parts of the work took.
    Time spent in stages inside this one is counted in both.
    """
    log = _running.get()
    if log is None:
        yield
        return
    start, began, n_items = time.time(), log.clock(), log.n_items
    yield
    log.note(name, start, log.clock() - began, frames, first, parts, log.n_items - n_items)


def count_item() -> None:
    """Count a finished piece of shared work for the current stage."""
    log = _running.get()
    if log is not None:
        log.n_items += 1


def is_logged() -> bool:
    """Whether a log of stages is being kept."""
    return _running.get() is not None


def awaited(items: Iterable[T], name: str = "read") -> Iterator[T]:
    """Pass the items on and note the time that each was waited for."""
    source, end = iter(items), object()
    while True:
        with logged(name):
            # No name holds the item here, so that it lives only as long as the caller needs it.
            found: list[Any] = [next(source, end)]
        if found[0] is end:
            return
        yield found.pop()


def _can_be_joined(last: dict[str, Any], stage: str, iteration: int, seconds: float, start: float) -> bool:
    is_same = (last["stage"], last["iteration"]) == (stage, iteration)
    gap = start - (last["start"] + last["seconds"])
    return is_same and float(last["seconds"]) + seconds < _SHORT_S and float(gap) < _SHORT_S


def _rounded(value: Any) -> Any:
    """Times to the microsecond: more digits would be noise."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return round(value, 6) if isinstance(value, float) else value
