"""Connection: the side of a stream that connects, and reconnects whenever a connection ends."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from orienteer.stream.sockets import (
    MOST_BYTES,
    MOST_PARTS,
    MOST_WAITING,
    import_zmq,
    open_socket,
    receive,
    send,
)


class Connection:
    """A connected socket of this kind ("DEALER", "PULL", "SUB", "REQ").

    ZeroMQ reconnects by itself to a server that was gone, but not to one that broke the rules, say with a
    message larger than ``most_bytes``: such a connection stays dead without any error.  So this class watches
    the socket for the end of a connection, and connects again each time.
    """

    def __init__(
        self, kind: str, address: str, most_bytes: int = MOST_BYTES, most_waiting: int = MOST_WAITING
    ) -> None:
        self._zmq = import_zmq()
        self.address = address
        self.socket = open_socket(
            kind, address, is_server=False, most_bytes=most_bytes, most_waiting=most_waiting
        )
        self._ends: Any = self.socket.get_monitor_socket(self._zmq.EVENT_DISCONNECTED)
        self._poller = self._zmq.Poller()
        self._poller.register(self.socket, self._zmq.POLLIN)
        self._poller.register(self._ends, self._zmq.POLLIN)

    def is_ready(self, seconds: float) -> bool:
        """Wait at most this long for a message; returns whether there is one."""
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            found = dict(self._poller.poll(round(1000 * left)))
            if self.socket in found:
                return True
            if self._ends in found:
                self._connect_again()
            elif left <= 0 or not found:
                return False

    def receive(self, most_parts: int = MOST_PARTS) -> list[memoryview] | None:
        """The parts of the message that has arrived; None if it has too many."""
        return receive(self.socket, most_parts)

    def send(self, parts: list[Any]) -> bool:
        """Send the parts; False if the other side accepts nothing now."""
        return send(self.socket, parts)

    def close(self) -> None:
        """Leave the stream."""
        with suppress(self._zmq.ZMQError):
            self.socket.disable_monitor()
        self.socket.close()

    def _connect_again(self) -> None:
        while self._ends.poll(0):
            self._ends.recv_multipart()
        with suppress(self._zmq.ZMQError):
            self.socket.disconnect(self.address)
        self.socket.connect(self.address)
