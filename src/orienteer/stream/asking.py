"""Asking a stream server: requests that may be repeated, and answers that are checked, over one socket."""

from __future__ import annotations

from typing import Any

from orienteer.errors import OrienteerError
from orienteer.stream.connection import Connection
from orienteer.stream.counters import StreamCounters
from orienteer.stream.message import Malformed, Message, decode, encode
from orienteer.stream.sockets import MOST_BYTES

DESCRIPTION = "description"


class Asker:
    """The side of a stream that asks.  Messages that cannot be understood are counted as malformed."""

    def __init__(self, address: str, counters: StreamCounters, most_bytes: int = MOST_BYTES) -> None:
        self.address, self.counters, self.most_bytes = address, counters, most_bytes
        self._connection = Connection("DEALER", address, most_bytes)

    def ask(self, kind: str, fields: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
        """Send a request; if the server is away and too many requests wait already, this one is discarded."""
        self._connection.send(encode(kind, fields, arrays))

    def answer(self, kind: str, seconds: float) -> Message | None:
        """The next answer of this kind; None if none comes in time; raises ``Malformed``."""
        if not self._connection.is_ready(seconds):
            return None
        try:
            parts = self._connection.receive()
            if parts is None:
                raise Malformed("a message has too many parts.")
            message = decode(parts)
            if message.kind == "refused":
                raise OrienteerError(
                    f"{self.address}: {message.text('reason')}",
                    "Give the address of the stream that this run began with, or begin a new run.",
                )
            if message.kind == DESCRIPTION != kind:
                return None  # the question was repeated while the server was away or busy
            if message.kind != kind:
                raise Malformed(f"an answer is '{message.kind[:40]}'; '{kind}' was asked for.")
        except Malformed:
            self.counters.malformed += 1
            raise
        return message

    def close(self) -> None:
        """Leave the stream."""
        self._connection.close()
