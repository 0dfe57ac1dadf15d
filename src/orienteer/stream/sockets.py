"""ZeroMQ sockets with limits: nothing larger than agreed is ever taken into memory."""

from __future__ import annotations

import re
import socket as local
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError

if TYPE_CHECKING:
    import zmq

    Socket: TypeAlias = zmq.Socket[bytes]

MOST_PARTS = 256
MOST_BYTES = 1 << 28
# Messages that may wait on either side.  ZeroMQ's default of 1000 would keep gigabytes of frames for a slow
# listener, and hundreds of copies of one question for a server that is away.
MOST_WAITING = 8
_TCP = re.compile(r"tcp://\S+:(?P<port>\d{1,5})")
_LARGEST_PORT = 65535
_HINT = "Addresses look like tcp://host:5555 or ipc:///tmp/stream."


def import_zmq() -> Any:
    """The library; if it is missing, the error says what to install."""
    try:
        import zmq
    except ImportError as error:
        raise OrienteerError("streams need pyzmq.", f"Install it: {how_to_install('live')}.") from error
    return zmq


def check_address(address: str) -> None:
    """Refuse what cannot be the address of a stream; does not try whether anything answers there."""
    import_zmq()
    found = _TCP.fullmatch(address)
    if address.startswith("tcp://") and (found is None or not 0 < int(found["port"]) <= _LARGEST_PORT):
        raise OrienteerError(f"a stream cannot be reached at {address}: there is no valid port.", _HINT)
    if address in ("ipc://", "tcp://"):
        raise OrienteerError(f"{address} does not name a stream.", _HINT)


def open_socket(
    kind: str,
    address: str,
    *,
    is_server: bool,
    most_bytes: int = MOST_BYTES,
    most_waiting: int = MOST_WAITING,
) -> Socket:
    """A socket of this kind ("DEALER", "ROUTER", "PULL", ...), bound or connected.

    most_bytes : a larger part of a message ends the connection before memory is allocated for it.
    most_waiting : messages that each side queues for sending or receiving before it accepts no more.

    A server gets a ZeroMQ context of its own, so that :func:`close_server` can wait for what it has sent.
    """
    zmq = import_zmq()
    context = zmq.Context() if is_server else zmq.Context.instance()
    socket: Socket = context.socket(getattr(zmq, kind))
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, most_bytes)
    socket.set_hwm(most_waiting)
    if kind == "SUB":
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    try:
        if is_server:
            if _is_served(address):
                raise zmq.ZMQError(zmq.EADDRINUSE)
            socket.bind(address)
        else:
            socket.connect(address)
    except zmq.ZMQError as error:
        socket.close()
        what = "offered" if is_server else "reached"
        is_port = address.startswith("tcp://")
        taken = f"Give another {'port' if is_port else 'path'}, or stop the program that uses this one."
        hint = taken if error.errno == zmq.EADDRINUSE else _HINT
        raise OrienteerError(f"a stream cannot be {what} at {address} ({error}).", hint) from error
    return socket


def _is_served(address: str) -> bool:
    """Whether a program listens at a local socket, which ZeroMQ would silently take from it."""
    scheme, _, path = address.partition("://")
    if scheme != "ipc" or not Path(path).is_socket():
        return False
    with local.socket(local.AF_UNIX) as knocking:
        knocking.settimeout(1.0)
        try:
            knocking.connect(path)
        except OSError:  # left behind by a server that was killed
            return False
    return True


def endpoint(socket: Socket) -> str:
    """The address at which a bound socket is reached, with the real port in place of ``*``."""
    return bytes(socket.getsockopt(import_zmq().LAST_ENDPOINT)).rstrip(b"\0").decode()


def close_server(socket: Socket, linger_s: float) -> None:
    """Close a bound socket, once everything sent has gone out or the time is over.

    Without the wait, what was just sent would be lost if the process ends right now.
    """
    context = socket.context
    socket.close(linger=round(1000 * linger_s))
    context.term()


def is_ready(socket: Socket, seconds: float) -> bool:
    """Wait at most this long for a message; returns whether there is one."""
    return bool(socket.poll(max(0, round(1000 * seconds))))


def receive(socket: Socket, most_parts: int = MOST_PARTS) -> list[memoryview] | None:
    """The parts of the message that has arrived; None if it has more parts than any sound message."""
    zmq = import_zmq()
    parts: list[memoryview] = []
    n_parts, is_more = 0, True
    while is_more:
        part = socket.recv(copy=False)
        is_more = bool(socket.getsockopt(zmq.RCVMORE))
        n_parts += 1
        if n_parts <= most_parts:
            parts.append(part.buffer)
    return parts if n_parts <= most_parts else None


def send(socket: Socket, parts: list[Any]) -> bool:
    """Send the parts, large ones without a copy; False if the other side accepts nothing now."""
    zmq = import_zmq()
    try:
        socket.send_multipart(parts, zmq.NOBLOCK, copy=False)
    except zmq.Again:
        return False
    return True
