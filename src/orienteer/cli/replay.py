"""``orienteer replay``: serve a file of patterns as a stream, as if a detector were measuring them now."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orienteer.cli.console import Stopped, messages, print_json
from orienteer.cli.opening import open_patterns
from orienteer.cli.options import AsJson, DistanceM, Geometry, WavelengthA
from orienteer.compute.words import counted
from orienteer.errors import SettingsError
from orienteer.run.signals import RunStopped, RunTerminated, stopping_at_once

if TYPE_CHECKING:
    from orienteer.stream.push import Publisher
    from orienteer.stream.replay import Replay

_PUSH_EVENTS = 64
# How long to wait for a slow listener to take the last events; one that disconnects is not waited for.
_LINGER_S = 60.0


def replay(
    file: Annotated[Path, typer.Argument(help="Patterns of any format; recognised by content.")],
    to: Annotated[
        str, typer.Option("--to", metavar="ADDRESS", help="Where to serve; port 0 takes a free one.")
    ] = "tcp://127.0.0.1:5555",
    rate_hz: Annotated[
        float | None,
        typer.Option("--rate", metavar="HZ", help="Events per second; by default as fast as they are taken."),
    ] = None,
    loop: Annotated[
        bool, typer.Option("--loop", metavar="", help="At the end, start again with new event ids.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", metavar="", help="At the end, wait for more: for a file that grows.")
    ] = False,
    dense: Annotated[
        bool,
        typer.Option("--dense", metavar="", help="Send all pixels, as a detector does, not just photons."),
    ] = False,
    push: Annotated[
        bool, typer.Option("--push", metavar="", help="Push batches instead of answering requests.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Exit when a listener has received the last event.")
    ] = False,
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    as_json: AsJson = False,
) -> None:
    """Serve a file as a live stream, to rehearse a beam time: orienteer live --source ADDRESS receives it.

    The server keeps no state: you can stop and restart it, and listeners continue without losing events.
    """
    from orienteer.stream.replay import Replay

    if rate_hz is not None and not rate_hz > 0:
        raise SettingsError(
            f"--rate {rate_hz:g}: must be above 0.", "Leave it out to serve events as fast as they are taken."
        )
    if loop and (follow or once):
        raise SettingsError(
            "--loop has no end, so it goes with neither --follow nor --once.", "Leave out one of them."
        )
    if (port := re.search(r"^tcp://.*:(\d+)$", to)) and int(port[1]) > 65535:
        raise SettingsError(f"--to {to}: there is no port {port[1]}.", "Give one of 1 to 65535, or 0.")
    source = open_patterns(file, geometry, wavelength_A, distance_m)
    player = Replay(source, rate_hz, loop=loop, follow=follow, dense=dense)
    began = time.monotonic()
    sent = (_push if push else _serve)(player, to, once)
    report = {
        "file": str(file),
        "sent": sent.events,
        "malformed": sent.malformed,
        "seconds": time.monotonic() - began,
    }
    if as_json:
        print_json(report)
    else:
        stopped = "" if sent.stopped is None else f"Stopped. {sent.stopped.hint} "
        messages.print(f"{stopped}{counted(sent.events, 'event')} sent.", soft_wrap=True)
    if isinstance(sent.stopped, RunTerminated):  # Ctrl-C is how a server is ended
        raise Stopped(sent.stopped.exit_status)


@dataclass(frozen=True)
class _Sent:
    """What a replay has done.

    events, malformed : numbers of events sent and of requests that were not understood.
    stopped : the signal that ended it; None if it reached its end.
    """

    events: int
    malformed: int
    stopped: RunStopped | None


def _serve(player: "Replay", to: str, once: bool) -> _Sent:
    from orienteer.stream.server import StreamServer

    server = StreamServer(player, to)
    stopped = None
    try:
        with stopping_at_once("Stopped.", "The same command continues, and listeners lose nothing."):
            messages.print(f"Serving {server.name} at {server.address}", markup=False, soft_wrap=True)
            while not (once and server.has_told_end):
                server.serve()
    except RunStopped as stop:
        stopped = stop
    finally:
        server.close()
    return _Sent(server.n_sent, server.n_malformed, stopped)


def _push(player: "Replay", to: str, _: bool) -> _Sent:
    from orienteer.stream.push import Publisher

    publisher = Publisher(to, player.source.frame_shape)
    linger_s, stopped = 0.0, None
    try:
        with stopping_at_once("Stopped.", "The same command starts again from the first event."):
            messages.print(f"Pushing to {publisher.address}", markup=False, soft_wrap=True)
            _push_all(player, publisher)
            linger_s = _LINGER_S
    except RunStopped as stop:
        stopped = stop
    finally:
        publisher.close(linger_s)
        player.close()
    return _Sent(publisher.n_sent, 0, stopped)


def _push_all(player: "Replay", publisher: "Publisher") -> None:
    """Push every event, and then the end."""
    first = 0
    while True:
        batch = player.batch(first, _PUSH_EVENTS)
        if batch.first == batch.last:
            if batch.is_end:
                break
            time.sleep(0.005)
            continue
        patterns = player.patterns(batch)
        while not publisher.send(patterns):
            pass
        first = batch.last
    while not publisher.finish():
        pass
