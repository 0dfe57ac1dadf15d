"""Asking a stream server: one socket, requests that may be repeated, answers that are checked."""

from __future__ import annotations

from typing import Any

from orienteer.errors import OrienteerError
from orienteer.stream.counters import StreamCounters
from orienteer.stream.message import Malformed, Message, decode, encode
from orienteer.stream.sockets import MOST_BYTES, is_ready, open_socket, receive, send


class Asker:
    """The side of a stream that asks.  What cannot be understood is counted as malformed."""

    def __init__(self, address: str, counters: StreamCounters, most_bytes: int = MOST_BYTES) -> None:
        self.address, self.counters, self.most_bytes = address, counters, most_bytes
        self._socket = open_socket("DEALER", address, is_server=False, most_bytes=most_bytes)

    def ask(self, kind: str, fields: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
        """Send a request; where the server is away and too many wait already, this one is left out."""
        send(self._socket, encode(kind, fields, arrays))

    def answer(self, kind: str, seconds: float) -> Message | None:
        """The next answer of this kind; None where none comes in time; raises ``Malformed``."""
        if not is_ready(self._socket, seconds):
            return None
        try:
            parts = receive(self._socket)
            if parts is None:
                raise Malformed("a message has too many parts.")
            message = decode(parts)
            if message.kind == "refused":
                raise OrienteerError(
                    f"{self.address}: {message.text('reason')}",
                    "Give the address of the stream that this run began with, or begin a new run.",
                )
            if message.kind != kind:
                raise Malformed(f"an answer is '{message.kind[:40]}'; '{kind}' was asked for.")
        except Malformed:
            self.counters.malformed += 1
            raise
        return message

    def close(self) -> None:
        """Leave the stream."""
        self._socket.close()
