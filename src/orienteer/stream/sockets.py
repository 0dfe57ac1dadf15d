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
# Messages that wait on either side.  ZeroMQ would take 1000: gigabytes of frames where a listener is slow,
# hundreds of copies of one question where a server is away.
MOST_WAITING = 8
_TCP = re.compile(r"tcp://\S+:(?P<port>\d{1,5})")
_LARGEST_PORT = 65535
_HINT = "Addresses look like tcp://host:5555 or ipc:///tmp/stream."


def import_zmq() -> Any:
    """The library, or what to install."""
    try:
        import zmq
    except ImportError as error:
        raise OrienteerError("streams need pyzmq.", f"Install it: {how_to_install('live')}.") from error
    return zmq


def check_address(address: str) -> None:
    """Refuse what cannot be the address of a stream; whether somebody answers there is not asked."""
    import_zmq()
    found = _TCP.fullmatch(address)
    if address.startswith("tcp://") and (found is None or not 0 < int(found["port"]) <= _LARGEST_PORT):
        raise OrienteerError(f"a stream cannot be reached at {address}.", _HINT)
    if address in ("ipc://", "tcp://"):
        raise OrienteerError(f"{address} names no stream.", _HINT)


def open_socket(
    kind: str,
    address: str,
    *,
    is_server: bool,
    most_bytes: int = MOST_BYTES,
    most_waiting: int = MOST_WAITING,
) -> Socket:
    """A socket of this kind ("DEALER", "ROUTER", "PULL", ...), bound or connected.

    most_bytes : a part of a message that is larger ends the connection before memory is taken for it.
    most_waiting : messages that a side keeps for the other, or for us, before it takes no more.

    A server has a context of its own, so that :func:`close_server` can wait for what it has sent.
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
        taken = f"Give another {'port' if is_port else 'path'}, or stop whoever has this one."
        hint = taken if error.errno == zmq.EADDRINUSE else _HINT
        raise OrienteerError(f"a stream cannot be {what} at {address} ({error}).", hint) from error
    return socket


def _is_served(address: str) -> bool:
    """Whether somebody listens at a local socket, which ZeroMQ would take from them without a word."""
    scheme, _, path = address.partition("://")
    if scheme != "ipc" or not Path(path).is_socket():
        return False
    with local.socket(local.AF_UNIX) as knocking:
        knocking.settimeout(1.0)
        try:
            knocking.connect(path)
        except OSError:  # a server that was killed has left it
            return False
    return True


def endpoint(socket: Socket) -> str:
    """Where a bound socket is reached; tells the port that a ``*`` stood for."""
    return bytes(socket.getsockopt(import_zmq().LAST_ENDPOINT)).rstrip(b"\0").decode()


def close_server(socket: Socket, linger_s: float) -> None:
    """Close a socket that was bound, after what it sent has gone out or the time is over.

    Without the wait a process that ends right now would take what it has just sent with it.
    """
    context = socket.context
    socket.close(linger=round(1000 * linger_s))
    context.term()


def is_ready(socket: Socket, seconds: float) -> bool:
    """Whether a message is there, waiting at most this long."""
    return bool(socket.poll(max(0, round(1000 * seconds))))


def receive(socket: Socket, most_parts: int = MOST_PARTS) -> list[memoryview] | None:
    """The parts of the message that is there; None where it has more parts than any sound message."""
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
    """Send the parts, large ones without a copy; False where nobody takes them now."""
    zmq = import_zmq()
    try:
        socket.send_multipart(parts, zmq.NOBLOCK, copy=False)
    except zmq.Again:
        return False
    return True
