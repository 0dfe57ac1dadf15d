"""GrowingSource: a file as it grows, or any other source, as a stream of events."""

from __future__ import annotations

import time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.source.base import Source
from orienteer.source.opening import open as open_source
from orienteer.source.patterns import Patterns
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Chosen, Events, Position
from orienteer.stream.seen import SeenIds

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

_LOOK_EVERY_S = 0.1


class GrowingSource:
    """Events of a file, from its first frame on; when all have been returned, it looks for new ones.

    data : a path, or anything else that ``orienteer.open`` takes.
    most_events : events of a batch, at most.
    follow : wait for more at the end; by default while the file is marked as being written.  Files without
        such a mark (CXI that is not written in HDF5's SWMR mode) need ``follow=True``.
    quiet_s : stop after so many seconds without a new frame, which also ends the wait for a writer that was
        killed; by default the wait has no end.
    """

    def __init__(
        self,
        data: str | PathLike[str] | Source,
        most_events: int = 256,
        *,
        follow: bool | None = None,
        quiet_s: float | None = None,
        geometry: Any = None,
    ) -> None:
        self.source = open_source(data, geometry)
        path = self.source.path
        self.name = "array" if path is None else str(path)
        self._of = Path(self.name).name  # files may be moved to other folders
        self.counters = StreamCounters()
        self.most_events, self.follow, self.quiet_s = most_events, follow, quiet_s
        self.is_finished = False
        self._seen_ids = SeenIds()
        self._frame = 0
        self._has_names: bool | None = None
        self._grew_at = self._look_at = time.monotonic()

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of one frame."""
        return self.source.frame_shape

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return self.source.n_pixels

    @property
    def detector(self) -> Detector | None:
        """The pixels; None if the file does not describe them."""
        return self.source.detector

    @property
    def has_names(self) -> bool:
        """Whether frames have real event ids rather than numbers; False until the first frame is there."""
        if self._has_names is None and len(self.source):
            self._has_names = self.source.read(slice(0, 1)).has_event_ids
        return bool(self._has_names)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch; None if nothing came in this time."""
        until = time.monotonic() + timeout_s
        while self._frame >= len(self.source):
            if self.is_finished:
                return None
            if time.monotonic() >= self._look_at:
                was_live, grew = self._is_live, self._look()
                # The writer may have added frames after the last look, and then ended.
                self.is_finished = not grew and self._is_over(was_live)
                continue
            left = until - time.monotonic()
            if left <= 0:
                return None
            time.sleep(max(0.0, min(left, self._look_at - time.monotonic())))
        return self._take(min(self._frame + self.most_events, len(self.source)))

    def seek(self, position: Position) -> None:
        """Go on right after the batch that had this position."""
        frame = position.get("frame")
        if not isinstance(frame, int) or frame < 0:
            raise OrienteerError(
                f"{self.name}: {dict(position)} is not a position in a file.",
                "Was the live run begun with another source? Give that one, or another --out.",
            )
        self._refuse_other(position, frame)
        # Events that now come again are no duplicates: they were asked for.
        self._frame, self._seen_ids, self.is_finished = frame, SeenIds(), False

    def _refuse_other(self, position: Position, frame: int) -> None:
        """Refuse the position of another file: so many frames of this one would be skipped unseen."""
        hint = "Give the source that the live run was begun with, or another --out."
        told, of = position.get("of", self._of), self._of
        if told != of:
            raise OrienteerError(f"{self.name}: the run has received '{told}', but this is '{of}'.", hint)
        if frame > len(self.source) and not (self._is_live or self.follow):
            n = counted(len(self.source), "frame")
            raise OrienteerError(f"{self.name}: has {n}, but {frame:,} were received from it before.", hint)

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    @property
    def _is_live(self) -> bool:
        return bool(getattr(self.source, "is_live", False))

    def _look(self) -> bool:
        """Look at the file again; returns whether there are more frames than before."""
        n_before, self._look_at = len(self.source), time.monotonic() + _LOOK_EVERY_S
        grew = self.source.refresh() > n_before
        if grew:
            self._grew_at = time.monotonic()
        return grew

    def _is_over(self, was_live: bool) -> bool:
        is_awaited = was_live if self.follow is None else self.follow
        is_quiet = self.quiet_s is not None and time.monotonic() - self._grew_at > self.quiet_s
        return not is_awaited or is_quiet

    def _take(self, last: int) -> Events:
        first = self._frame
        rows = slice(first, last)
        event_id, columns = self.source.event_ids(rows), self.source.read_columns(frames=rows)
        self._frame = last  # only now: if reading fails, these events come the next time

        def read(chosen: Chosen) -> Patterns:
            if isinstance(chosen, slice) and chosen.step in (None, 1):
                start, stop, _ = chosen.indices(last - first)
                return self.source.read(slice(first + start, first + max(start, stop)))
            return self.source.read(np.arange(first, last)[chosen])

        events = Events(event_id, columns, {"of": self._of, "frame": last}, read)
        is_new = self._seen_ids.take(event_id)
        n_new = int(is_new.sum())
        self.counters.received += n_new
        self.counters.duplicates += len(event_id) - n_new
        return events if n_new == len(event_id) else events.take(is_new)
