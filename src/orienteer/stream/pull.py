"""PullSource: events of an Orienteer stream, asked for by position so that either side may die.

As soon as a batch has come, the source asks for the next one, which travels while this one is worked on.  An
answer states the position at which it begins.  If that is not the position of the source, the answer belongs
to a question that was repeated, and is ignored.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.asking import DESCRIPTION, Asker
from orienteer.stream.base import NoAnswer
from orienteer.stream.batch_message import has_frames, patterns_of, small_data_of
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Chosen, Events, Position, events_of
from orienteer.stream.message import Malformed, Message
from orienteer.stream.seen import SeenIds
from orienteer.stream.sockets import MOST_BYTES

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

_LONGEST_PAUSE_S = 0.25
_LARGEST_FRAME = 1 << 28


class PullSource:
    """Events of the stream server at an address.

    most_events : events of a batch, at most.
    small_data_first : ask only for ids and columns; frames are sent only for the events that ``patterns``
        chooses.
    patience_s : seconds without an answer after which the question is asked again.
    connect_s : seconds to wait for the first answer.
    """

    def __init__(
        self,
        address: str,
        most_events: int = 256,
        *,
        small_data_first: bool = False,
        patience_s: float = 2.0,
        connect_s: float = 10.0,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.name = address
        self.counters = StreamCounters()
        self.is_finished = False
        self.small_data_first, self.patience_s = small_data_first, patience_s
        self._batches = Asker(address, self.counters, most_bytes)
        self._frames: Asker | None = None
        self._seen_ids = SeenIds()
        self._asked_at: float | None = None
        self._not_before = 0.0
        try:
            self._take_description(self._first_answer(connect_s))
        except BaseException:
            self.close()
            raise
        self.most_events = min(most_events, self._most_given)

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch; None if nothing came in this time."""
        until = time.monotonic() + timeout_s
        while not self.is_finished:
            now = time.monotonic()
            self._ask_if_due(now)
            wait_until = min(until, self._not_before if self._asked_at is None else until)
            try:
                message = self._batches.answer("events", max(0.0, min(wait_until - now, self.patience_s)))
            except Malformed:
                self._asked_at = message = None  # it may have been the answer: ask again
            if message is not None and (events := self._take(message)) is not None:
                return events
            if time.monotonic() >= until:
                break
        return None

    def seek(self, position: Position) -> None:
        """Go on right after the batch that had this position."""
        self._wanted: Position = dict(position)
        # Events that now come again are no duplicates: they were asked for.
        self._asked_at, self._seen_ids, self.is_finished = None, SeenIds(), False

    def close(self) -> None:
        """Leave the stream."""
        self._batches.close()
        if self._frames is not None:
            self._frames.close()

    def _ask_if_due(self, now: float) -> None:
        if self._asked_at is None and now < self._not_before:
            return
        if self._asked_at is None or now - self._asked_at > self.patience_s:
            fields = {"from": self._wanted, "most": self.most_events, "frames": not self.small_data_first}
            self._batches.ask("events", fields)
            self._asked_at = now

    def _take(self, message: Message) -> Events | None:
        """The events of an answer; None if there are none yet, or if it answers another question."""
        start = dict(self._wanted)
        if message.fields.get("from") != start:
            return None
        try:
            event_id, columns = small_data_of(message)
            position = message.table("position")
            if not len(event_id):
                self.is_finished = message.fields.get("is_end") is True
                self._asked_at, self._not_before = None, time.monotonic() + _pause(message)
                return None
            if position == start:
                raise Malformed("a batch ends at the position where it begins.")
            if has_frames(message):
                events = events_of(patterns_of(message, self.n_pixels), position)
            elif self.small_data_first:
                events = Events(event_id, columns, position, lambda rows: self._read(start, event_id, rows))
            else:
                raise Malformed("a batch came without frames.")
        except Malformed:
            self.counters.malformed += 1
            self._asked_at = None
            return None
        self._wanted, self._asked_at, self._not_before = position, None, 0.0
        self._ask_if_due(time.monotonic())
        is_new = self._seen_ids.take(events.event_id)
        n_new = int(is_new.sum())
        self.counters.received += n_new
        self.counters.duplicates += len(events) - n_new
        return events if n_new == len(events) else events.take(is_new)

    def _read(self, start: Position, event_id: Any, rows: Chosen) -> Patterns:
        """The frames of some events of the batch that began at ``start``; asks again until they come."""
        wanted = np.arange(len(event_id))[rows]
        if self._frames is None:
            self._frames = Asker(self.name, self.counters, self._batches.most_bytes)
        until = time.monotonic() + 60 * self.patience_s
        while time.monotonic() < until:
            self._frames.ask("frames", {"from": dict(start)}, {"rows": wanted})
            asked_at = time.monotonic()
            while (left := asked_at + self.patience_s - time.monotonic()) > 0:
                try:
                    message = self._frames.answer("frames", left)
                except Malformed:
                    break
                patterns = None if message is None else self._frames_of(message, start)
                if patterns is not None and np.array_equal(patterns.event_id, event_id[wanted]):
                    return patterns
        raise OrienteerError(
            f"{self.name}: the stream no longer sends its frames.", "Start its server again."
        )

    def _frames_of(self, message: Message, start: Position) -> Patterns | None:
        try:
            return patterns_of(message, self.n_pixels) if message.fields.get("from") == start else None
        except Malformed:
            self.counters.malformed += 1
            return None

    def _first_answer(self, connect_s: float) -> Message:
        until = time.monotonic() + connect_s
        while (left := until - time.monotonic()) > 0:
            self._batches.ask("describe", {})
            with suppress(Malformed):
                message = self._batches.answer(DESCRIPTION, min(left, 1.0))
                if message is not None:
                    return message
        raise NoAnswer(
            f"{self.name}: no stream answered within {connect_s:g} s.",
            "Check the address, and whether the server is running: orienteer replay FILE --to ADDRESS",
        )

    def _take_description(self, message: Message) -> None:
        shape = message.fields.get("frame_shape")
        if (
            not isinstance(shape, list)
            or not shape
            or not all(isinstance(n, int) and n > 0 for n in shape)
            or math.prod(shape) > _LARGEST_FRAME
        ):
            raise OrienteerError(
                f"{self.name}: the stream describes frames of shape {shape!r}.",
                "Check that it is an Orienteer stream, of a version that this one reads.",
            )
        self.frame_shape = tuple(shape)
        self._wanted = message.table("start")
        self._most_given = max(1, message.number("most", 1 << 30))
        self.polarisation = message.fields.get("polarisation")
        if self.polarisation not in (None, "x", "y", "none"):
            raise OrienteerError(
                f"{self.name}: the stream describes a polarisation {self.polarisation!r}.",
                "Check that it is an Orienteer stream, of a version that this one reads.",
            )
        content = message.arrays.get("detector")
        self.detector: Detector | None = None if content is None else _detector_from(content, self.name)


def _pause(message: Message) -> float:
    """Seconds that the server asks us to wait before we ask again."""
    again_s = message.fields.get("again_s")
    return min(_LONGEST_PAUSE_S, max(0.001, again_s)) if isinstance(again_s, float | int) else 0.01


def _detector_from(content: Any, name: str) -> Detector:
    """The detector in the bytes of an HDF5 file."""
    from orienteer.detector.opening import open_detector

    with TemporaryDirectory() as folder:
        path = Path(folder) / "detector.h5"
        path.write_bytes(content.astype(np.uint8, copy=False).tobytes())
        try:
            return open_detector(path)
        except OrienteerError as error:
            raise OrienteerError(
                f"{name}: the stream describes a detector that cannot be read.",
                "Give the detector here: --geometry FILE",
            ) from error
