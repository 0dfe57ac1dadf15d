"""Open any stream: the address says what it is."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

from orienteer.errors import OrienteerError
from orienteer.stream.base import EventSource


def open_stream(address: str | PathLike[str], **options: Any) -> EventSource:
    """The events at an address.

    address : ``tcp://host:5555`` or ``ipc://...``, a stream that ``orienteer replay`` or a program serves.
    options : of the kind of source; see its class.
    """
    text = fspath(address)
    if text.startswith(("tcp://", "ipc://")):
        from orienteer.stream.pull import PullSource

        return PullSource(text, **options)
    raise OrienteerError(f"'{text}' is no address of a stream.", "Streams look like tcp://host:5555.")
