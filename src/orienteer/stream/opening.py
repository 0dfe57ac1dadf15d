"""Open any stream: the address says what it is."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from orienteer.errors import OrienteerError
from orienteer.stream.base import EventSource

ADDRESSES = (
    "tcp://host:5555 (orienteer replay), push+tcp://host:5555, pub+tcp://host:5555, karabo://host:4545, "
    "extra-data:RUN_FOLDER, psana:exp=NAME,run=N, a file, a folder in which files appear, or several: "
    "join:front=ADDRESS;back=ADDRESS"
)


def open_stream(address: str | PathLike[str], **options: Any) -> EventSource:
    """The events at an address; docs/how-to/streams.md shows each kind.

    address : ``tcp://`` or ``ipc://``, a server that answers by position; ``push+tcp://`` and ``pub+tcp://``,
        one that pushes or publishes; ``karabo://host:port``; ``extra-data:FOLDER``;
        ``psana:exp=...,run=...``; the path of a file, which may still grow, or of a folder of runs.
        ``join:front=ADDRESS;back=ADDRESS`` matches the events of several by id.
    options : of the kind of source; see its class.
    """
    text = fspath(address)
    try:
        return _open(text, options)
    except TypeError as error:
        if options and "unexpected keyword argument" in str(error):
            raise OrienteerError(f"{text}: {str(error).partition(' got ')[2] or error}.") from error
        raise


def _open(text: str, options: dict[str, Any]) -> EventSource:
    if text.startswith(("tcp://", "ipc://")):
        from orienteer.stream.pull import PullSource

        return PullSource(text, **options)
    if text.startswith("join:"):
        return _join(text.partition(":")[2], options)
    if text.startswith(("push+", "pub+")):
        from orienteer.stream.push import PushSource

        kind, _, rest = text.partition("+")
        return PushSource(rest, "PULL" if kind == "push" else "SUB", **options)
    if text.startswith("karabo://"):
        from orienteer.stream.karabo import KaraboSource

        return KaraboSource(text.replace("karabo://", "tcp://", 1), **options)
    if text.startswith("extra-data:"):
        from orienteer.stream.euxfel import EuxfelSource

        return EuxfelSource(text.partition(":")[2], **options)
    if text.startswith("psana:"):
        from orienteer.stream.psana import open_psana

        return open_psana(text.partition(":")[2], **options)
    path = Path(text)
    if path.is_dir():
        from orienteer.stream.folder import FolderSource

        return FolderSource(path, **options)
    if path.exists():
        from orienteer.stream.growing import GrowingSource

        return GrowingSource(path, **options)
    raise OrienteerError(f"'{text}' is no stream, file or folder.", f"Streams are: {ADDRESSES}.")


def _join(text: str, options: dict[str, Any]) -> EventSource:
    """Sources whose events are matched, "front=ADDRESS;back=ADDRESS"; the options are the builder's."""
    from orienteer.stream.building import EventBuilder

    named = [part.partition("=") for part in text.split(";") if part]
    if len({name for name, _, _ in named}) < max(2, len(named)) or not all(n and a for n, _, a in named):
        raise OrienteerError(
            f"'join:{text}' does not name several streams.", "Write: join:front=ADDRESS;back=ADDRESS"
        )
    sources: dict[str, EventSource] = {}
    try:
        for name, _, address in named:
            sources[name] = open_stream(address)
        return EventBuilder(sources, **options)
    except BaseException:
        for source in sources.values():
            source.close()
        raise
