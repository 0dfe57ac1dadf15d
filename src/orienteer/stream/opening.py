"""Open any stream: the address says of which kind it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from orienteer.compute.nearest import meant_instead
from orienteer.errors import FileError, OrienteerError
from orienteer.stream.base import EventSource
from orienteer.stream.options import check_options

ADDRESSES = (
    "tcp://host:5555 (orienteer replay), push+tcp://host:5555, pub+tcp://host:5555, karabo://host:4545, "
    "extra-data:RUN_FOLDER, psana:exp=NAME,run=N, a file, a folder in which files appear, or several: "
    "join:front=ADDRESS;back=ADDRESS"
)
_NETWORK = re.compile(r"(?:(?:push|pub)\+)?(?P<kind>tcp|ipc|karabo)://(?P<place>.*)")


def open_stream(address: str | PathLike[str], **options: Any) -> EventSource:
    """The events at an address; docs/how-to/streams.md shows each kind of address.

    address : ``tcp://`` or ``ipc://``, a server that answers by position; ``push+tcp://`` and ``pub+tcp://``,
        one that pushes or publishes; ``karabo://host:port``; ``extra-data:FOLDER``;
        ``psana:exp=...,run=...``; the path of a file, which may still grow, or of a folder of runs.
        ``join:front=ADDRESS;back=ADDRESS`` matches the events of several addresses by id.
    options : arguments of the class of this kind of source.
    """
    text = fspath(address)
    if text.startswith("join:"):
        return _join(text, options)
    make, given = _kind_of(text)
    check_options(text, make, options, len(given))
    return make(*given, **options)


def check_stream(address: str | PathLike[str], options: Mapping[str, Any]) -> None:
    """Refuse what cannot be a stream, as far as can be seen without receiving from it."""
    text = fspath(address)
    if text.startswith("join:"):
        from orienteer.stream.building import EventBuilder

        check_options(text, EventBuilder, options)
        for _, part in _named(text):
            check_stream(part, {})
        return
    make, given = _kind_of(text)
    check_options(text, make, options, len(given))
    if found := _NETWORK.match(text):
        from orienteer.stream.sockets import check_address

        check_address(f"tcp://{found['place']}" if found["kind"] != "ipc" else text)
    elif text.startswith("psana:"):
        from orienteer.stream.psana import import_psana

        import_psana()
    elif text.startswith("extra-data:") and not Path(given[0]).is_dir():
        hint = meant_instead(given[0], "Give the folder of a run.")
        raise FileError(given[0], "there is no such folder.", hint)
    elif Path(text).is_file():
        make(*given, **options).close()  # opening a file consumes no events


def _kind_of(text: str) -> tuple[Callable[..., EventSource], tuple[Any, ...]]:
    """The class or function that opens the source at an address, and its first arguments."""
    if text.startswith(("tcp://", "ipc://")):
        from orienteer.stream.pull import PullSource

        return PullSource, (text,)
    if text.startswith(("push+", "pub+")):
        from orienteer.stream.push import PushSource

        kind, _, rest = text.partition("+")
        return PushSource, (rest, "PULL" if kind == "push" else "SUB")
    if text.startswith("karabo://"):
        from orienteer.stream.karabo import KaraboSource

        return KaraboSource, (text.replace("karabo://", "tcp://", 1),)
    if text.startswith("extra-data:"):
        from orienteer.stream.euxfel import EuxfelSource

        return EuxfelSource, (text.partition(":")[2],)
    if text.startswith("psana:"):
        from orienteer.stream.psana import open_psana

        return open_psana, (text.partition(":")[2],)
    path = Path(text)
    if path.is_dir():
        from orienteer.stream.folder import FolderSource

        return FolderSource, (path,)
    if path.exists():
        from orienteer.stream.growing import GrowingSource

        return GrowingSource, (path,)
    raise OrienteerError(f"'{text}' is no stream, file or folder.", f"Give one of: {ADDRESSES}.")


def _join(text: str, options: dict[str, Any]) -> EventSource:
    """Open several sources and match their events; the options are those of the builder."""
    from orienteer.stream.building import EventBuilder

    check_options(text, EventBuilder, options)
    sources: dict[str, EventSource] = {}
    try:
        for name, address in _named(text):
            sources[name] = open_stream(address)
        return EventBuilder(sources, **options)
    except BaseException:
        for source in sources.values():
            source.close()
        raise


def _named(text: str) -> list[tuple[str, str]]:
    """Names and addresses of "join:front=ADDRESS;back=ADDRESS"."""
    named = [part.partition("=") for part in text.removeprefix("join:").split(";") if part]
    if len({name for name, _, _ in named}) < max(2, len(named)) or not all(n and a for n, _, a in named):
        raise OrienteerError(
            f"'{text}' does not name several streams.", "Write: join:front=ADDRESS;back=ADDRESS"
        )
    return [(name, address) for name, _, address in named]
