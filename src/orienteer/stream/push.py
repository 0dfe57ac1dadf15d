"""Streams that push: a Publisher sends batches without being asked, and a PushSource receives them.

There are no positions.  Every message says how many events were sent before it, so that the listener can
count what it missed.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping
from typing import Any, Literal

from orienteer.detector.detector import Detector
from orienteer.source.patterns import Patterns
from orienteer.stream.base import NoAnswer
from orienteer.stream.batch_message import arrays_of, patterns_of
from orienteer.stream.connection import Connection
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events, Position, events_of
from orienteer.stream.message import Malformed, Message, decode, encode
from orienteer.stream.seen import SeenIds
from orienteer.stream.sockets import MOST_BYTES, close_server, endpoint, open_socket, send

_MOST_BEFORE = 1 << 62


class Publisher:
    """Sends batches to the listeners at an address.

    to_all : every listener gets every batch, and misses some if it is slow or away (PUB); otherwise listeners
        share the batches, and the sender waits while none of them accepts one (PUSH).
    """

    def __init__(self, address: str, frame_shape: tuple[int, ...], *, to_all: bool = False) -> None:
        self.frame_shape = frame_shape
        self._socket = open_socket("PUB" if to_all else "PUSH", address, is_server=True)
        self.address = endpoint(self._socket)
        self._sender, self.n_sent = secrets.token_hex(8), 0

    def send(self, patterns: Patterns, patience_s: float = 1.0) -> bool:
        """Send a batch; False if no listener accepts it in this time, so that it may be sent again."""
        return self._send("events", arrays_of(patterns), len(patterns), patience_s)

    def finish(self, patience_s: float = 1.0) -> bool:
        """Announce that nothing more will come."""
        return self._send("end", {}, 0, patience_s)

    def close(self, linger_s: float = 1.0) -> None:
        """Close, once everything sent has gone out or the time is over."""
        close_server(self._socket, linger_s)

    def _send(self, kind: str, arrays: Mapping[str, Any], n_events: int, patience_s: float) -> bool:
        fields = {"sender": self._sender, "before": self.n_sent, "frame_shape": list(self.frame_shape)}
        parts, until = encode(kind, fields, arrays), time.monotonic() + patience_s
        while not send(self._socket, parts):
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)
        self.n_sent += n_events
        return True


class PushSource:
    """Events of a stream that pushes (``kind="PULL"``) or publishes (``"SUB"``) them at an address.

    If several listeners share what one sender pushes, each counts the batches of the others as gaps.
    """

    detector: Detector | None = None

    def __init__(
        self,
        address: str,
        kind: Literal["PULL", "SUB"] = "PULL",
        *,
        connect_s: float = 10.0,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.name = address
        self.counters = StreamCounters()
        self.is_finished = False
        self.frame_shape: tuple[int, ...] = ()
        self._seen_ids = SeenIds()
        self._sender, self._expected, self._first_before = "", 0, 0
        self._connection = Connection(kind, address, most_bytes)
        self._held = self._next(connect_s)
        if self._held is None and not self.is_finished:
            self.close()
            raise NoAnswer(
                f"{address}: nothing was pushed within {connect_s:g} s.",
                "Check the address, and whether the sender is running.",
            )

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch; None if nothing came in this time."""
        events = self._held if self._held is not None else self._next(timeout_s)
        self._held = None
        if events is not None:
            self.counters.received += len(events)
        return events

    def seek(self, position: Position) -> None:
        """Count what was sent since this position as gaps: a stream that pushes cannot go back."""
        sender, before = position.get("sender"), position.get("before")
        if self._held is None or not isinstance(before, int):
            return
        self.counters.gaps += max(0, self._first_before - (before if sender == self._sender else 0))

    def close(self) -> None:
        """Stop listening."""
        self._connection.close()

    def _next(self, timeout_s: float) -> Events | None:
        until = time.monotonic() + timeout_s
        while not self.is_finished:
            if self._connection.is_ready(until - time.monotonic()):
                try:
                    events = self._take(self._connection.receive())
                except Malformed:
                    self.counters.malformed += 1
                    continue
                if events is not None:
                    return events
            elif time.monotonic() >= until:
                break
        return None

    def _take(self, parts: Any) -> Events | None:
        if parts is None:
            raise Malformed("a message has too many parts.")
        message = decode(parts)
        if message.kind not in ("events", "end"):
            raise Malformed(f"a stream pushed '{message.kind[:40]}'.")
        sender, before = message.text("sender"), message.number("before", _MOST_BEFORE)
        if message.kind == "end":
            self._count_gap(sender, before, 0)
            self.is_finished = True
            return None
        shape = self.frame_shape or _shape_of(message)
        patterns = patterns_of(message, math.prod(shape))
        self.frame_shape = shape
        self._count_gap(sender, before, len(patterns))
        is_new = self._seen_ids.take(patterns.event_id)
        self.counters.duplicates += int((~is_new).sum())
        events = events_of(patterns, {"sender": sender, "before": before + len(patterns)})
        if is_new.all():
            return events
        return events.take(is_new) if is_new.any() else None

    def _count_gap(self, sender: str, before: int, n_events: int) -> None:
        """Count events that were sent but never came; a sender that was restarted counts from 0."""
        expected = self._expected if sender == self._sender else 0
        if self._sender:
            self.counters.gaps += max(0, before - expected)
        else:  # what was sent before we began to listen is no gap
            self._first_before = before
        self._sender, self._expected = sender, max(expected, before + n_events)


def _shape_of(message: Message) -> tuple[int, ...]:
    shape = message.fields.get("frame_shape")
    if not isinstance(shape, list) or not shape or not all(type(n) is int and 0 < n < 1 << 28 for n in shape):
        raise Malformed("a message does not state the shape of its frames.")
    if math.prod(shape) > 1 << 28:
        raise Malformed("a message has frames that are too large.")
    return tuple(shape)
