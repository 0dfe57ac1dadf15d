"""Worker: receives events, skips duplicates, filters, looks for hits, and commits.

One loop, one thread: a batch is taken only when the previous one is done.  So a source that can wait does so
(nothing is lost), and memory holds one batch and one segment.  Hits are judged a few at a time as they come.
Judging them all at commit would feed back: a late worker makes longer segments, which take longer to judge.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.live.allocator import give_back_freed_memory
from orienteer.live.folder import LiveFolder
from orienteer.live.gathering import Gathering
from orienteer.live.journal import Journal, Segment
from orienteer.live.looking import Columns, Looking
from orienteer.live.slow_steps import SlowSteps
from orienteer.live.summary import Summary
from orienteer.run.live_settings import LiveSettings
from orienteer.source.journal import no_photons
from orienteer.source.patterns import Patterns
from orienteer.source.wavelength import WAVELENGTH
from orienteer.stream.base import EventSource
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events
from orienteer.stream.seen import SeenIds

Filter = Callable[[Any], NDArray[np.bool_]]
TIME, RECEIVED, FATE, KIND, SIZE = "time_s", "received_s", "fate", "kind", "size_A"
_PARTS = ("seen", "finder", "analysis")
_WAIT_S = 0.2
# Ranges of event ids remembered as seen, and stored in every segment; the source itself remembers more.
_MOST_RANGES = 1 << 16
# Hits judged in one call; the last call before a commit may have fewer.
MOST_JUDGED_AT_ONCE = 64
# A segment is committed early when it holds this much memory, or as much as its state if that is larger.
_MOST_BYTES = 16 * 2**20
# Writing takes at most this share of the time: segments of large detectors, which take long to write, are
# written less often.  The pause is bounded, so that one hang of the disk does not delay commits for long.
_COMMIT_SHARE, _LONGEST_PAUSE_S = 0.25, 10.0
# A column with more values per event than this is not small data, and is not stored in the journal.
_MOST_VALUES = 64
# Counters that the source keeps itself; the worker counts the rest, once the fate of an event is known.
_TOLD_BY_SOURCE = ("duplicates", "malformed", "gaps", "late")


class Fate(IntEnum):
    """What became of an event."""

    PROCESSED = 0
    FILTERED = 1
    DROPPED = 2


class Worker:
    """The loop from a source to the journal of a live run.

    source : is moved to the position where the last segment ends.
    keep : the user's filter: small data by name to (N,) bool; None keeps all.
    lost : counters of what damaged files of the journal held; empty if none is damaged.
    """

    def __init__(
        self,
        folder: LiveFolder,
        source: EventSource,
        looking: Looking,
        settings: LiveSettings,
        keep: Filter | None = None,
        wavelength_A: float = 0.0,
    ) -> None:
        self._folder, self._source, self._looking = folder, source, looking
        self._settings, self._keep, self._wavelength_A = settings, keep, wavelength_A
        self._journal = Journal(folder.path)
        self._seen = SeenIds(_MOST_RANGES)
        self.summary = Summary()
        self.set_aside: tuple[str, ...] = ()
        self.lost: dict[str, int] = {}
        self._went_on(self._journal.restore(_PARTS))
        self._counted_before = self.summary.counters
        self._counters = StreamCounters()
        self._gathering = Gathering()
        self._steps = SlowSteps(folder.log.append)
        self._most_bytes = _MOST_BYTES
        self._has_news = False
        self._commit_s = 0.0
        self._oldest_s = 0.0

    @property
    def n_segments(self) -> int:
        """Segments that are in place."""
        return self._journal.n_segments

    def run(self, is_wanted: Callable[[], bool], is_over: Callable[[], bool] = lambda: False) -> bool:
        """Receive until the source ends or ``is_wanted`` turns false; returns whether the run is over.

        is_over : whether the run is to end now, although its source may continue.
        """
        committed = time.monotonic()
        while is_wanted() and not is_over() and not self._source.is_finished:
            with self._steps.doing("receiving events"):
                events = self._source.next(_WAIT_S)
            if events is not None:
                self.take(events)
            pause_s = min(self._commit_s / _COMMIT_SHARE, _LONGEST_PAUSE_S)
            is_due = time.monotonic() - committed >= max(self._settings.commit_every_s, pause_s)
            if self._has_news and (is_due or self._gathering.n_bytes > self._most_bytes):
                self.commit()
                committed = time.monotonic()
        self.summary.is_finished = self._source.is_finished or is_over()
        self.commit()
        return self.summary.is_finished

    def take(self, events: Events) -> None:
        """Decide the fate of each event of a batch, and look for hits in those that are to be processed."""
        now_s = time.time()
        is_new = self._seen.take(events.event_id)
        counters = self._counters
        counters.duplicates += int((~is_new).sum())
        counters.received += int(is_new.sum()) + events.n_dropped + events.n_filtered
        counters.dropped += events.n_dropped
        counters.filtered += events.n_filtered
        self.summary.position = events.position
        self._has_news = True
        new = events if is_new.all() else events.take(is_new)
        if not len(new):
            return
        fate = self._decide(new, now_s)
        columns = {name: column for name, column in new.columns.items() if _is_small(column)}
        if self._wavelength_A and WAVELENGTH not in columns:
            columns[WAVELENGTH] = np.full(len(new), self._wavelength_A)
        columns |= {"event_id": new.event_id, RECEIVED: np.full(len(new), now_s), FATE: fate}
        wanted = np.flatnonzero(fate == Fate.PROCESSED)
        if len(wanted):
            with self._steps.doing("looking for hits"):
                # A slice avoids a copy.
                found, hits = self._looking.look(
                    new.patterns(slice(None) if len(wanted) == len(new) else wanted)
                )
            columns |= {name: _spread(column, wanted, len(new)) for name, column in found.items()}
            rows = wanted[np.asarray(found["is_hit"], dtype=bool)]
            of_hits = Patterns(hits.frames, hits.event_id, {name: columns[name][rows] for name in columns})
            self._gathering.add_hits(of_hits, rows)
        counters.filtered += int((fate == Fate.FILTERED).sum())
        counters.dropped += int((fate == Fate.DROPPED).sum())
        counters.processed += len(wanted)
        if not self._gathering.n_shots:
            self._oldest_s = now_s
        self._gathering.add_shots(len(new), columns)
        while self._gathering.n_unjudged >= MOST_JUDGED_AT_ONCE:
            self._judge()

    def commit(self) -> None:
        """Commit everything taken since the last commit, atomically."""
        while self._gathering.n_unjudged:
            self._judge()
        began = time.monotonic()
        with self._steps.doing("writing a segment"):
            self._put_in_place()
        with self._steps.doing("giving memory back"):
            give_back_freed_memory()
        self._commit_s = time.monotonic() - began

    def _judge(self) -> None:
        """Analyse the hits that have waited longest."""
        hits = self._gathering.take_unjudged(MOST_JUDGED_AT_ONCE)
        if hits is not None:
            with self._steps.doing("judging hits"):
                self._gathering.add_judged(len(hits), self._looking.analyse(hits))

    def _put_in_place(self) -> None:
        gathered, self._gathering = self._gathering, Gathering()
        rows, n_shots = gathered.hit_rows, gathered.n_shots
        shots, hits, judged = gathered.shots(), gathered.hits(), gathered.judged()
        photons = no_photons(self._source.n_pixels) if hits is None else hits.sparse()
        shots |= {name: _spread(column, rows, n_shots) for name, column in judged.items()}
        now_s = time.time()
        told = self._source.counters.as_dict()
        beside = StreamCounters(**{name: told[name] for name in _TOLD_BY_SOURCE})
        self.summary.counters = self._counted_before + self._counters + beside
        if n_shots:
            kinds = _kinds_in_words(judged)
            self.summary.add(shots["event_id"], rows, judged.get(SIZE), kinds, now_s)
            self.summary.note_commit(now_s, self._oldest_s)
        state = {"seen": self._seen.state(), **self._looking.state()}
        self._most_bytes = max(_MOST_BYTES, _n_bytes(state))
        summary = self.summary.as_json()
        self._journal.commit(Segment(self._source.frame_shape, shots, rows, photons, summary, state))
        self._has_news = False
        self._folder.write_counters(
            {
                **self.summary.counters.as_dict(),
                "hits": self.summary.hits,
                "segments": self.n_segments,
                "is_finished": self.summary.is_finished,
                **self.lost,
            }
        )

    def _went_on(self, restored: Any) -> None:
        """Continue from the last segment, if there is one."""
        if restored is None:
            return
        self.set_aside = tuple(path.name for path in restored.set_aside)
        self.summary = Summary.from_json(restored.summary)
        if restored.state["seen"]:
            self._seen.restore(restored.state["seen"])
        self._looking.restore(restored.state)
        if self.summary.position is not None:
            self._source.seek(self.summary.position)

    def _decide(self, events: Events, now_s: float) -> NDArray[np.uint8]:
        """(N,) fates: the user's filter leaves out some; late events are dropped if the settings say so."""
        fate = np.full(len(events), Fate.PROCESSED, dtype=np.uint8)
        if self._keep is not None:
            fate[~self._keep({**events.columns, "event_id": events.event_id})] = Fate.FILTERED
        if self._settings.when_late == "drop" and TIME in events.columns:
            age_s = now_s - np.asarray(events.columns[TIME], dtype=np.float64)
            fate[(age_s > self._settings.late_after_s) & (fate == Fate.PROCESSED)] = Fate.DROPPED
        return fate


def _is_small(column: NDArray[Any]) -> bool:
    return int(np.prod(column.shape[1:])) <= _MOST_VALUES and column.dtype.kind in "biufSU"


def _spread(column: NDArray[Any], rows: NDArray[np.int64], n: int) -> NDArray[Any]:
    """A column of these rows, extended to all n rows with NaN, 0 or False."""
    column = np.asarray(column)
    spread = np.full((n, *column.shape[1:]), np.nan if column.dtype.kind == "f" else 0, dtype=column.dtype)
    spread[rows] = column
    return spread


def _n_bytes(state: dict[str, Columns]) -> int:
    return sum(array.nbytes for arrays in state.values() for array in arrays.values())


def _kinds_in_words(analysed: Columns) -> list[str] | None:
    if KIND not in analysed:
        return None
    from orienteer.hits.kinds import HitKind

    names = {int(kind): kind.name.lower() for kind in HitKind}
    return [names.get(int(kind), "unsure") for kind in analysed[KIND]]
