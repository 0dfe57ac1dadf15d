"""EventBuilder: joins the parts of each event that several detectors and small-data streams send."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.base import EventSource
from orienteer.stream.counters import StreamCounters
from orienteer.stream.distinct import MEMORY, RecentIds
from orienteer.stream.events import Chosen, Events, Position
from orienteer.stream.parts import Parts, side_by_side

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

# After a restart, parts of this many events, the last that were dropped, are still recognised as late.
_DROPPED_KNOWN = 1024
_PAUSE_S = 0.005


class EventBuilder:
    """Events for which every source has sent its part, matched by id; itself an event source.

    sources : by name; the columns of the first keep their names; a column of a later source whose name is
        taken is called ``source.column``.
    frames : the sources whose frames are joined, side by side in this order, into the frame of the event; by
        default all that have pixels.
    window : events that may wait for a part; never less than two batches of every source.  Incomplete events
        are dropped, and counted, if more wait (those that wait longest), if a source has sent a window of
        other events after them, or if every source has ended.  Parts that a source itself has dropped count
        as gaps; their events stay incomplete.
    patience_s : a source that is ahead by half a window is not read further, unless the sources behind it
        have been silent for so many seconds: then it goes on, and events that wait for them are dropped.
    """

    def __init__(
        self,
        sources: Mapping[str, EventSource],
        frames: Sequence[str] | None = None,
        *,
        window: int = 8192,
        most_events: int = 256,
        patience_s: float = 30.0,
    ) -> None:
        if not sources or window < 2:
            raise OrienteerError("matching events needs at least one source and a window of at least 2.")
        self.sources = dict(sources)
        self.frames = tuple(frames or (n for n, s in sources.items() if s.frame_shape and s.n_pixels))
        if not self.frames or not set(self.frames) <= set(sources):
            raise OrienteerError(
                f"no source gives the frames: {', '.join(self.frames) or 'none has pixels'}.",
                "Name the source that has them.",
            )
        self.window, self.most_events, self.patience_s = window, most_events, patience_s
        self.name = " + ".join(source.name for source in sources.values())
        self._own = StreamCounters()
        # Parts of events that are not handed out yet, by event, in the order in which events were first seen.
        self._waiting: dict[int, dict[str, tuple[Events, int]]] = {}
        self._complete: deque[int] = deque()
        self._decided = RecentIds(max(MEMORY, 8 * window))
        self._dropped = RecentIds()
        self._n_dropped = self._largest_batch = 0
        # Batches of each source, from the oldest with an undecided event on, and the position before them.
        self._outstanding: dict[str, deque[Events]] = {name: deque() for name in sources}
        self._settled: dict[str, Position] = {}
        # Events that a source will send again after a seek, although they were decided before it.
        self._known: dict[str, set[int]] = {name: set() for name in sources}
        # Number of parts of each source that wait for those of others.
        self._n_ahead = dict.fromkeys(sources, 0)
        self._heard_at = dict.fromkeys(sources, time.monotonic())

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """The shape of one detector; several of the same shape are stacked, else pixels are a flat list."""
        shapes = [self.sources[name].frame_shape for name in self.frames]
        if len(shapes) == 1:
            return shapes[0]
        if len(set(shapes)) == 1:
            return (len(shapes), *shapes[0])
        return (sum(math.prod(shape) for shape in shapes),)

    @property
    def n_pixels(self) -> int:
        """Pixels of all detectors."""
        return math.prod(self.frame_shape)

    @property
    def detector(self) -> Detector | None:
        """The pixels if one source has all frames; None for several, which share no geometry."""
        return self.sources[self.frames[0]].detector if len(self.frames) == 1 else None

    @property
    def is_finished(self) -> bool:
        """Whether every source has ended and all events were handed out or dropped."""
        return not self._waiting and not self._n_dropped and self._all_ended

    @property
    def counters(self) -> StreamCounters:
        """Events received and dropped here; duplicates, malformed, gaps and late here and in the sources."""
        total = StreamCounters(**self._own.as_dict())
        for source in self.sources.values():
            theirs = source.counters
            total.duplicates += theirs.duplicates
            total.malformed += theirs.malformed
            total.gaps += theirs.gaps
            total.late += theirs.late
        return total

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch of complete events; None if none became complete in this time."""
        until = time.monotonic() + timeout_s
        while True:
            # Complete events go out before new ones are read, or sources with large batches fill the memory.
            came = not self._complete and self._listen()
            if self._all_ended:
                self._drop(self._incomplete())
            if self._complete or self._n_dropped:
                return self._hand_out()
            left = until - time.monotonic()
            if self._all_ended or left <= 0:
                return None
            if not came:
                time.sleep(min(_PAUSE_S, left))

    def seek(self, position: Position) -> None:
        """Go on after a batch; call it before the first ``next``.

        Sources go back to their oldest event that was not decided; later ones that were are left out.
        """
        for event_id in position["dropped"]:
            self._dropped.add(event_id)
            self._decided.add(event_id)
        for name, place in position["sources"].items():
            if place["behind"] is not None:
                self.sources[name].seek(place["behind"])
                self._settled[name] = place["behind"]
            self._known[name] = set(place["known"])
        for event_id in set().union(*self._known.values()):
            self._decided.add(event_id)

    def close(self) -> None:
        """Close all sources."""
        for source in self.sources.values():
            source.close()

    @property
    def _all_ended(self) -> bool:
        return all(source.is_finished for source in self.sources.values())

    def _listen(self) -> bool:
        """Take what the sources have now; returns whether any had something."""
        came = False
        for name, source in self.sources.items():
            if source.is_finished or not self._may_read(name):
                continue
            events = source.next(0)
            if events is not None:
                came = True
                self._heard_at[name] = time.monotonic()
                self._file(name, events)
        self._drop(islice(self._incomplete(), max(0, len(self._waiting) - self._room)))
        self._drop_outlived()
        return came

    @property
    def _room(self) -> int:
        return max(self.window, 2 * len(self.sources) * self._largest_batch)

    def _may_read(self, name: str) -> bool:
        """Whether a source may be read: it is not ahead, or those behind it have been silent too long."""
        most_ahead = self._room // 2
        if self._n_ahead[name] < most_ahead:
            return True
        behind = [n for n, s in self.sources.items() if not s.is_finished and self._n_ahead[n] < most_ahead]
        now = time.monotonic()
        return all(now - self._heard_at[other] > self.patience_s for other in behind)

    def _file(self, name: str, events: Events) -> None:
        """Add the parts of a source to their events."""
        known = self._known[name]
        self._largest_batch = max(self._largest_batch, len(events))
        self._own.gaps += events.n_dropped + events.n_filtered
        for row, event_id in enumerate(events.event_id.tolist()):
            parts = self._waiting.get(event_id)
            if parts is None:
                if event_id in known:
                    known.discard(event_id)
                elif event_id in self._decided:
                    is_late = event_id in self._dropped
                    self._own.late += is_late
                    self._own.duplicates += not is_late
                else:
                    parts = self._waiting[event_id] = {}
            if parts is None:
                continue
            if name in parts:
                self._own.duplicates += 1
                continue
            parts[name] = (events, row)
            self._n_ahead[name] += 1
            if len(parts) == len(self.sources):
                self._complete.append(event_id)
                self._no_longer_ahead(parts)
        self._outstanding[name].append(events)
        self._settle()

    def _incomplete(self) -> Iterator[int]:
        """Events that wait for a part, the longest waiting first."""
        return (one for one, parts in self._waiting.items() if len(parts) < len(self.sources))

    def _drop(self, event_ids: Iterable[int]) -> None:
        """Drop these events, which wait for a part."""
        for event_id in list(event_ids):
            self._no_longer_ahead(self._waiting.pop(event_id))
            self._decided.add(event_id)
            self._dropped.add(event_id)
            self._n_dropped += 1
            self._own.received += 1
            self._own.dropped += 1

    def _drop_outlived(self) -> None:
        """Drop incomplete events after which a source has sent a window of others.

        Otherwise one event that never becomes complete would keep all later batches in memory.
        """
        for batches in self._outstanding.values():
            n_more = sum(len(events) for events in batches) - self._room
            for events in batches:
                if n_more <= 0:
                    break
                ids = set(events.event_id.tolist())
                self._drop(one for one in self._incomplete() if one in ids)
                n_more -= len(events)
        self._settle()

    def _no_longer_ahead(self, parts: Iterable[str]) -> None:
        for name in parts:
            self._n_ahead[name] -= 1

    def _hand_out(self) -> Events:
        ids = [self._complete.popleft() for _ in range(min(self.most_events, len(self._complete)))]
        found = [self._waiting.pop(event_id) for event_id in ids]
        for one in ids:
            self._decided.add(one)
        self._own.received += len(ids)
        self._settle()
        n_dropped, self._n_dropped = self._n_dropped, 0
        event_id = np.array(ids, np.uint64)
        if not ids:
            empty = Patterns(np.empty((0, self.n_pixels), np.uint16), event_id)
            return Events(event_id, {}, self._position(), empty.__getitem__, n_dropped)
        parts = {name: Parts.of([places[name] for places in found]) for name in self.sources}
        columns: dict[str, NDArray[Any]] = {}
        for name, part in parts.items():
            for column, values in part.columns().items():
                columns[f"{name}.{column}" if column in columns else column] = values

        def read(chosen: Chosen) -> Patterns:
            rows = np.arange(len(event_id))[chosen]
            frames = side_by_side([parts[name].patterns(rows) for name in self.frames]).frames
            return Patterns(frames, event_id[rows], {name: c[rows] for name, c in columns.items()})

        return Events(event_id, columns, self._position(), read, n_dropped)

    def _settle(self) -> None:
        """Release batches in which every event is decided: a restart begins after them."""
        for name, batches in self._outstanding.items():
            while batches and not any(one in self._waiting for one in batches[0].event_id.tolist()):
                self._settled[name] = batches.popleft().position

    def _position(self) -> Position:
        return {
            "sources": {
                name: {
                    "behind": self._settled.get(name),
                    # Also those that the source has not sent again yet since the last restart.
                    "known": [
                        *sorted(self._known[name]),
                        *(
                            one
                            for events in batches
                            for one in events.event_id.tolist()
                            if one not in self._waiting
                        ),
                    ],
                }
                for name, batches in self._outstanding.items()
            },
            "dropped": self._dropped.last(_DROPPED_KNOWN),
        }
