"""Summary: what a live run has seen so far, in numbers that are carried from segment to segment.

Every segment holds the whole summary, so that a page or a terminal reads only one small file, however long
the run is.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import FileError
from orienteer.source.journal_files import JOURNAL, list_ranges, open_segment, shots_in
from orienteer.stream.counters import StreamCounters

SIZE_EDGES_A: NDArray[np.float64] = np.geomspace(10.0, 10_000.0, 97)
_MINUTE_S = 60
_RECENT_HITS = 48
# Current rates are averages over this many seconds.
_NOW_S = 10.0
_RATE_NAMES = ("t_s", "shots", "hits", "singles")


class Summary:
    """Counters, hits by minute, sizes and kinds of a whole run, across restarts.

    Hits of the last minute are also kept by second, so that people who adjust the experiment see the effect.
    """

    def __init__(self) -> None:
        self.counters = StreamCounters()
        self.shots = self.hits = 0
        self.position: Mapping[str, Any] | None = None
        self.is_finished = False
        self._kinds: dict[str, int] = {}
        self._sizes: dict[str, list[int]] = {}
        self._minutes: dict[str, list[int]] = {name: [] for name in _RATE_NAMES}
        self._seconds: dict[str, list[int]] = {name: [] for name in _RATE_NAMES}
        self._recent_hits: list[int] = []
        self._recent: list[tuple[float, int, int]] = []
        self._latency_s = 0.0

    def add(
        self,
        event_id: NDArray[np.uint64],
        hit_rows: NDArray[np.int64],
        sizes_A: NDArray[np.float64] | None,
        kinds: list[str] | None,
        at_s: float,
    ) -> None:
        """Take in a batch of shots that came at a time (unix seconds).

        sizes_A, kinds : of the hits; None if they were not analysed.
        """
        self.shots += len(event_id)
        self.hits += len(hit_rows)
        self._recent_hits = [*self._recent_hits, *event_id[hit_rows].tolist()][-_RECENT_HITS:]
        if kinds is not None:
            for kind in kinds:
                self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if sizes_A is not None and kinds is not None:
            for kind in set(kinds):
                chosen = sizes_A[np.array(kinds) == kind]
                counts = np.histogram(chosen[np.isfinite(chosen)], SIZE_EDGES_A)[0]
                known = self._sizes.get(kind, [0] * len(counts))
                self._sizes[kind] = [a + int(b) for a, b in zip(known, counts, strict=True)]
        singles = 0 if kinds is None else kinds.count("single")
        for rates, step_s in ((self._minutes, _MINUTE_S), (self._seconds, 1)):
            _count(rates, int(at_s) // step_s * step_s, len(event_id), len(hit_rows), singles)
        t_s, now_s = self._seconds["t_s"], int(at_s)
        # Seconds in the future were counted before the clock was set back; they are discarded.
        kept = slice(bisect_right(t_s, now_s - _MINUTE_S), bisect_right(t_s, now_s))
        self._seconds = {name: values[kept] for name, values in self._seconds.items()}

    def note_commit(self, at_s: float, oldest_s: float) -> None:
        """Note that a segment is about to be committed, whose first event came at ``oldest_s``."""
        self._latency_s = max(0.0, at_s - oldest_s)
        self._recent = [
            each
            for each in [*self._recent, (at_s, self.counters.received, self.hits)]
            if at_s - _NOW_S < each[0] <= at_s
        ][-100:]

    def as_json(self) -> dict[str, Any]:
        """All of it, as a segment holds it."""
        return {
            "counters": self.counters.as_dict(),
            "shots": self.shots,
            "hits": self.hits,
            "position": self.position,
            "is_finished": self.is_finished,
            "kinds": self._kinds,
            "sizes": self._sizes,
            "minutes": self._minutes,
            "seconds": self._seconds,
            "recent_hits": self._recent_hits,
            "recent": self._recent,
            "latency_s": self._latency_s,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Summary:
        """The summary that :meth:`as_json` gave."""
        summary = cls()
        summary.counters = StreamCounters.from_dict(told["counters"])
        summary.shots, summary.hits = shots_in(told), int(told["hits"])
        summary.position = told["position"]
        summary._kinds, summary._sizes = dict(told["kinds"]), dict(told["sizes"])
        summary._minutes = {name: list(told["minutes"][name]) for name in _RATE_NAMES}
        if "seconds" in told:
            summary._seconds = {name: list(told["seconds"][name]) for name in _RATE_NAMES}
        summary._recent_hits = list(told["recent_hits"])
        # Current rates start over: nothing was received between the stop and this start.
        summary._latency_s = float(told["latency_s"])
        return summary


def live_summary(folder: str | PathLike[str], with_powder: bool = True) -> dict[str, Any]:
    """What a live run has seen: counters, hit rate by minute, sizes, kinds, current rates and powder sums.

    Returns
    -------
    dict with ``counters``, ``hits``, ``hit_rate`` (``t_s``, ``shots``, ``hits``, ``singles`` by minute) and
    ``last_minute`` (the same by second),
    ``size_A`` (``edges``, ``counts``, ``by_kind``), ``kinds``, ``now`` (``frames_per_s``, ``hits_per_s``,
    ``latency_s``), ``recent_hits``, ``frame_shape``, ``is_finished`` and ``powder``: sum (P,) of ``hits`` and
    the mean ``background``.
    """
    journal = Path(folder) / JOURNAL
    for look in range(3):
        ranges = list_ranges(journal)
        if not ranges:
            return _told(Summary().as_json(), (), {})
        try:
            with open_segment(journal / ranges[-1].name) as segment:
                powder = segment.state("powder") if with_powder else {}
                return _told(segment.summary(), segment.index().frame_shape, powder)
        except FileError:
            if look == 2:
                raise
    raise AssertionError


def _told(summary: Mapping[str, Any], frame_shape: tuple[int, ...], powder: dict[str, Any]) -> dict[str, Any]:
    by_kind = summary["sizes"]
    counts = [sum(column) for column in zip(*by_kind.values(), strict=True)]
    return {
        "counters": summary["counters"],
        "hits": summary["hits"],
        "hit_rate": summary["minutes"],
        "last_minute": summary.get("seconds", {name: [] for name in _RATE_NAMES}),
        "size_A": {
            "edges": SIZE_EDGES_A.tolist(),
            "counts": counts or [0] * (len(SIZE_EDGES_A) - 1),
            "by_kind": by_kind,
        },
        "kinds": summary["kinds"],
        "now": {**_rates(summary["recent"]), "latency_s": summary["latency_s"]},
        "recent_hits": summary["recent_hits"],
        "frame_shape": frame_shape,
        "is_finished": summary["is_finished"],
        "powder": powder,
    }


def _count(rates: dict[str, list[int]], t_s: int, shots: int, hits: int, singles: int) -> None:
    """Add to the bin of a time (unix seconds); this is the last bin unless the clock was set back."""
    place = bisect_left(rates["t_s"], t_s)
    if place == len(rates["t_s"]) or rates["t_s"][place] != t_s:
        for name in _RATE_NAMES:
            rates[name].insert(place, t_s if name == "t_s" else 0)
    for name, n in (("shots", shots), ("hits", hits), ("singles", singles)):
        rates[name][place] += n


def _rates(recent: list[tuple[float, int, int]]) -> dict[str, float]:
    """Frames and hits per second over the last segments; 0 if nothing was committed recently."""
    is_old = not recent or time.time() - recent[-1][0] > _NOW_S
    if is_old or len(recent) < 2 or recent[-1][0] <= recent[0][0]:
        return {"frames_per_s": 0.0, "hits_per_s": 0.0}
    seconds = recent[-1][0] - recent[0][0]
    shots, hits = (recent[-1][k] - recent[0][k] for k in (1, 2))
    return {"frames_per_s": shots / seconds, "hits_per_s": hits / seconds}
