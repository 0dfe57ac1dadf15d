"""KaraboSource: trains of a Karabo bridge as events, one for each pulse."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.detector.detector import Detector
from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.base import NoAnswer
from orienteer.stream.connection import Connection
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events, Position, events_of
from orienteer.stream.karabo_message import KaraboData, decode_karabo
from orienteer.stream.message import Malformed
from orienteer.stream.seen import SeenIds
from orienteer.stream.sockets import import_zmq
from orienteer.stream.trains import module_of, train_event_id, value_of_pulse

_MOST_PULSES, _MOST_PARTS = 4096, 4096
# Room for a train of a detector of 16 modules, stacked, as floats; so only few may wait in memory.
_MOST_BYTES, _MOST_WAITING = 1 << 31, 2


class KaraboSource:
    """Events of a bridge that answers "next" (``kind="REQ"``) or publishes (``"SUB"``), one batch per train.

    image_source : the source of the frames; by default the one that has ``image_key``, or all modules of one
        detector, which become one frame (modules, slow, fast) in the order of their numbers.
    image_key : the key of the frames: (pulses, ...), or one frame if there is no ``image.pulseId`` beside it.
    pulse_axis : the axis of pulses.
    columns : further columns by name, each a (source, key) with one value per train or per pulse.
    n_modules : by default as many as the first train has; pulses of trains that lack a module are dropped.

    There are no positions.  ``counters.gaps`` counts trains that were skipped, ``counters.dropped`` pulses
    that only some modules have.
    """

    detector: Detector | None = None
    is_finished = False

    def __init__(
        self,
        address: str,
        kind: str = "REQ",
        *,
        image_source: str | None = None,
        image_key: str = "image.data",
        pulse_axis: int = 0,
        columns: Mapping[str, tuple[str, str]] | None = None,
        n_modules: int | None = None,
        patience_s: float = 10.0,
        connect_s: float = 10.0,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self.name, self.kind, self.patience_s = address, kind, patience_s
        self.image_source, self.image_key, self.pulse_axis = image_source, image_key, pulse_axis
        self.extra_columns = dict(columns or {})
        self.counters = StreamCounters()
        self.frame_shape: tuple[int, ...] = ()
        self._n_modules = n_modules
        self._modules: tuple[str, ...] = ()
        self._seen_ids = SeenIds()
        self._last_train: int | None = None
        self._asked_at: float | None = None
        self._connection = Connection(kind, address, most_bytes, _MOST_WAITING)
        if kind == "REQ":  # allows a question to be repeated after the bridge was restarted
            self._connection.socket.setsockopt(import_zmq().REQ_RELAXED, 1)
        # The first whole train, which gives the shape of frames, and the dropped events before it.
        self._held: deque[Events] = deque()
        try:
            self._await_shape(connect_s)
        except BaseException:
            self.close()
            raise

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The events of the next train; None if nothing came in this time."""
        events = self._held.popleft() if self._held else self._next(timeout_s)
        if events is not None:
            self.counters.received += len(events) + events.n_dropped
            self.counters.dropped += events.n_dropped
        return events

    def seek(self, position: Position) -> None:
        """Count the trains since this position as gaps: a bridge cannot go back."""
        train = position.get("train")
        if isinstance(train, int) and self._held:
            self.counters.gaps += max(0, int(self._held[0].position["train"]) - train - 1)

    def close(self) -> None:
        """Leave the bridge."""
        self._connection.close()

    def _await_shape(self, connect_s: float) -> None:
        until = time.monotonic() + connect_s
        while not self.frame_shape:
            events = self._next(until - time.monotonic())
            if events is None:
                raise NoAnswer(
                    f"{self.name}: no whole train with '{self.image_key}' came within {connect_s:g} s.",
                    "Check the address, the socket (REQ or SUB) and the sources of the bridge.",
                )
            self._held.append(events)

    def _next(self, timeout_s: float) -> Events | None:
        until = time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            is_due = self._asked_at is None or now - self._asked_at > self.patience_s
            if self.kind == "REQ" and is_due:
                self._connection.send([b"next"])
                self._asked_at = now
            if self._connection.is_ready(min(until - now, self.patience_s)):
                self._asked_at = None
                try:
                    parts = self._connection.receive(_MOST_PARTS)
                    events = self._take(decode_karabo(parts or []))
                except (Malformed, ValueError, TypeError, OverflowError):
                    self.counters.malformed += 1
                    events = None
                if events is not None:
                    return events
            if time.monotonic() >= until:
                return None

    def _take(self, message: Mapping[str, KaraboData]) -> Events | None:
        named = self._images(message)
        names, images = tuple(named), list(named.values())
        if not images:
            return None  # a train without our frames
        train = images[0].train_id
        if any(image.train_id != train for image in images):
            raise Malformed("modules of one message belong to different trains.")
        frames, pulse, number, n_dropped = self._frames(images)
        if self._last_train is not None:
            self.counters.gaps += max(0, train - self._last_train - 1)
        self._last_train = max(train, self._last_train or 0)
        self._n_modules = self._n_modules or len(images)
        if len(images) > self._n_modules:
            raise OrienteerError(
                f"{self.name}: {counted(len(images), 'module')} came, but {self._n_modules} were expected.",
                "Start again now that all are there, or give n_modules.",
            )
        if len(images) < self._n_modules or names != (self._modules or names):
            return self._nothing(train, n_dropped + len(pulse))
        shape = (*((len(images),) if len(images) > 1 else ()), *frames[0].shape[1:])
        if self.frame_shape and shape != self.frame_shape:
            raise Malformed(f"frames are {shape}; those before were {self.frame_shape}.")
        self.frame_shape, self._modules = shape, names
        n_pulses = len(pulse)
        joined = frames[0] if len(frames) == 1 else np.stack(frames, axis=1)
        train_id = np.full(n_pulses, train, np.uint64)
        columns: dict[str, NDArray[Any]] = {"train_id": train_id, "pulse_id": pulse}
        stamp = images[0].metadata.get("timestamp")
        if isinstance(stamp, float):
            columns["time_s"] = np.full(n_pulses, stamp)
        for name, (source, key) in self.extra_columns.items():
            columns[name] = _per_pulse(message, source, key, number)
        event_id = train_event_id(train_id, pulse)
        events = events_of(
            Patterns(joined.reshape(n_pulses, math.prod(shape)), event_id, columns),
            {"train": train},
            n_dropped,
        )
        is_new = self._seen_ids.take(event_id)
        self.counters.duplicates += int((~is_new).sum())
        return events if is_new.all() else events.take(is_new) if is_new.any() else None

    def _nothing(self, train: int, n_dropped: int) -> Events:
        """The events of a train whose pulses were all dropped: none."""
        no_ids = np.empty(0, np.uint64)
        return Events(
            no_ids,
            {},
            {"train": train},
            lambda _: Patterns(np.empty((0, self.n_pixels), np.uint16), no_ids),
            n_dropped,
        )

    def _images(self, message: Mapping[str, KaraboData]) -> dict[str, KaraboData]:
        """The sources that have the frames, modules in the order of their numbers."""
        if self.image_source is not None:
            found = message.get(self.image_source)
            return {} if found is None or self.image_key not in found.values else {self.image_source: found}
        having = {name: data for name, data in message.items() if self.image_key in data.values}
        modules = {name: module for name in having if (module := module_of(name)) is not None}
        if (len(modules) < len(having) and len(having) > 1) or len({d for d, _ in modules.values()}) > 1:
            names = ", ".join(sorted(having))
            raise OrienteerError(
                f"{self.name}: several sources have '{self.image_key}': {names}.",
                "Choose one with image_source.",
            )
        return {name: having[name] for name in sorted(having, key=lambda name: modules.get(name, ("", 0)))}

    def _frames(
        self, images: list[KaraboData]
    ) -> tuple[list[NDArray[Any]], NDArray[np.uint64], NDArray[np.int64], int]:
        """Frames (pulses, ...) of each module, for the pulses that all modules have.

        Also returns the ids of these pulses, their numbers within the train, counted from 0, and how many
        pulses only some modules have.
        """
        frames, pulses = zip(*(self._module(image) for image in images), strict=True)
        if len({one.shape[1:] for one in frames}) > 1:
            raise Malformed("modules of a detector have different shapes.")
        common, every = pulses[0], np.unique(np.concatenate(pulses))
        for pulse in pulses[1:]:
            common = common[np.isin(common, pulse)]
        number = np.searchsorted(every, common)
        if len(common) == len(every) and all(np.array_equal(pulse, common) for pulse in pulses):
            return list(frames), common, number, 0
        orders = [np.argsort(pulse) for pulse in pulses]
        chosen = [
            one[order[np.searchsorted(pulse[order], common)]]
            for one, pulse, order in zip(frames, pulses, orders, strict=True)
        ]
        return chosen, common, number, len(every) - len(common)

    def _module(self, image: KaraboData) -> tuple[NDArray[Any], NDArray[np.uint64]]:
        frames = image.values[self.image_key]
        if not isinstance(frames, np.ndarray) or frames.dtype.kind not in "iuf" or frames.ndim < 2:
            raise Malformed("frames are not an array of numbers.")
        prefix = self.image_key.rpartition(".")[0]
        pulse = image.values.get(f"{prefix}.pulseId", image.values.get(f"{prefix}.cellId"))
        if pulse is None:
            return frames[None], np.zeros(1, np.uint64)
        pulse = np.asarray(pulse).reshape(-1)
        if not -frames.ndim <= self.pulse_axis < frames.ndim or frames.ndim < 3:
            raise Malformed("frames have no axis of pulses.")
        frames = np.moveaxis(frames, self.pulse_axis, 0)
        if pulse.dtype.kind not in "iu" or len(pulse) != len(frames) or not 0 < len(pulse) <= _MOST_PULSES:
            raise Malformed("there is not one pulse for each frame.")
        if int(pulse.min()) < 0 or int(pulse.max()) >= 1 << 16 or len(np.unique(pulse)) < len(pulse):
            raise Malformed("pulses have no sound numbers.")
        return frames, pulse.astype(np.uint64)


def _per_pulse(
    message: Mapping[str, KaraboData], source: str, key: str, number: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A value for each pulse: that of the train, or entry ``number`` of a list; NaN if none came."""
    value = message[source].values.get(key) if source in message else None
    values = np.asarray(np.nan if value is None else value)
    if values.dtype.kind not in "biuf":
        raise Malformed(f"'{key}' of {source} is not a number.")
    if values.size == 1:
        return np.full(len(number), values.reshape(())[()], np.float64)
    if values.ndim != 1:
        return np.full(len(number), np.nan)
    return value_of_pulse(values.astype(np.float64), number)
