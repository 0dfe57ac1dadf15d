"""The processes of a live run: the worker that receives, the growing map, the feeder of the database.

Each is started as ``python -m orienteer.live.roles ROLE FOLDER``, reads everything that it needs from the
folder, and prints what it does in sentences.  When its standard input ends, it saves its work and exits.
Standard input ends when the parent process dies, however it dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError
from orienteer.live.folder import LiveFolder
from orienteer.live.given import load_filter, open_detector, open_sources
from orienteer.live.marks import ExcludedEvents, FrameTags
from orienteer.run.lock import RunLock
from orienteer.run.signals import RunStopped, StopRequests
from orienteer.source.journal import JournalReader, JournalSource

if TYPE_CHECKING:
    from orienteer.stream.base import EventSource

# Exit statuses: everything is done; starting again would fail in the same way; it was stopped.
DONE, NO_USE, STOPPED = 0, 64, 143
CAMPAIGN_VARIABLE = "ORIENTEER_LIVE_CAMPAIGN"
# Deadline in seconds of time.monotonic(), which all processes of a machine share and nobody can set.
UNTIL_VARIABLE = "ORIENTEER_LIVE_UNTIL"
_LOOK_EVERY_S = 0.5
_LOCK_PATIENCE_S = 20.0


class NoUse(OrienteerError):  # noqa: N818 - starting again would be of no use
    """The user has to fix something before this role can succeed."""


def receive(folder: LiveFolder, stop: StopRequests) -> int:
    """Receive the stream until it ends, the time limit is reached, or a stop is requested."""
    from orienteer.live.allocator import take_large_blocks_one_by_one
    from orienteer.live.looking import looking_of
    from orienteer.live.worker import Worker

    take_large_blocks_one_by_one()
    described, settings = folder.describe(), folder.read_settings()
    until_s = float(os.environ.get(UNTIL_VARIABLE) or "inf")
    with _to_be_mended():
        keep = _load_filter(str(described.get("filter") or ""))
    source = _wait_for_source(
        described, keep is not None, lambda: stop.is_requested or time.monotonic() >= until_s
    )
    if source is None and not stop.is_requested:
        folder.write_counters({**folder.read_counters(), "is_finished": True})
        _say("has received nothing: the source has not answered in the time of this run")
        return DONE
    if source is None:
        return STOPPED
    with ExitStack() as stack:
        stack.callback(source.close)
        with _to_be_mended():
            detector = open_detector(settings) or source.detector or folder.read_detector()
            folder.meet_source(source.frame_shape, detector, getattr(source, "polarisation", None))
            looking = looking_of(settings, source.n_pixels, detector, described.get("device", "auto"))
            wavelength_A = settings.run.wavelength_A
            worker = Worker(folder, source, looking, settings.live, keep, wavelength_A)
            worker.lost = note_damage(folder)
        for name in worker.set_aside:
            folder.log.append("damaged", reason=f"segment {name} is damaged; its events are received again.")
        received = worker.summary.counters.received
        again = f", and goes on behind {counted(received, 'event')}" if received else ""
        _say(f"receives from {described['source']}{again}")
        if worker.run(lambda: not stop.is_requested, lambda: time.monotonic() >= until_s):
            _say("has received everything")
            return DONE
    return STOPPED


def reconstruct(folder: LiveFolder, stop: StopRequests) -> int:
    """Grow a map from the hits, and finish it when the stream is over."""
    from orienteer.hits.kinds import HitKind
    from orienteer.online.arrivals import OtherHits
    from orienteer.online.following import follow

    os.nice(5)  # the worker has priority
    source = _wait_for_hits(folder, stop)
    if source is None:
        return STOPPED if stop.is_requested else DONE
    if source.detector is None:
        raise NoUse("no detector geometry is known, so there is no map.", "Give --geometry.")
    described, settings = folder.describe(), folder.read_settings()
    if "wavelength_A" not in source.column_names:
        raise NoUse("the stream gives no wavelength, so there is no map.", "Give --wavelength-A.")

    def is_over() -> bool:
        counters = folder.read_counters()
        n_hits = source.n_frames + source.n_lost
        return bool(counters.get("is_finished")) and n_hits >= int(counters.get("hits", 0))

    def are_single(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        return np.asarray(columns["kind"] == HitKind.SINGLE)

    select = are_single if settings.live.map_of == "single" and "kind" in source.column_names else None

    def grow() -> None:
        # The page shows the same hits under the live run and under its map: an exclusion in either counts.
        excluded = ExcludedEvents((folder.path, folder.map), _say)
        follow(
            source,
            folder.map,
            settings,
            seed=int(described.get("seed") or 0),
            device=described.get("device") or "auto",
            is_over=is_over,
            select=select,
            on_step=_say_step,
            is_stopping=lambda: stop.is_requested,
            excluded=excluded.news,
        )

    folder.set_aside_map_of_another(source.detector)
    _say("grows with the hits")
    try:
        grow()
    except OtherHits:  # a file of the journal has been damaged since the map was begun
        folder.set_aside_map("its hits no longer match those of the journal")
        _say("begins again with the hits that the journal still has")
        grow()
    if stop.is_requested:
        return STOPPED
    _say("is finished")
    return DONE


def feed_campaign(folder: LiveFolder, stop: StopRequests) -> int:
    """Put every shot into the database of the campaign, exactly once."""
    from orienteer.campaign.campaign import Campaign
    from orienteer.campaign.feeding import feed

    reader = JournalReader(folder.path)

    def read(first: int, at_most: int) -> dict[str, NDArray[Any]]:
        if stop.is_requested:
            return {}
        reader.refresh()
        last = min(reader.n_shots, first + at_most)
        return reader.retrying(lambda: reader.shots(reader.columns, slice(first, max(first, last))))

    with Campaign.open(os.environ[CAMPAIGN_VARIABLE], create=True) as campaign:
        sample = str(folder.describe().get("sample") or "")
        run, _ = campaign.add_run_at(folder.path.resolve(), sample=sample, kind="live", is_open=True)
        _say(f"has run '{run}' in the campaign")
        tags = FrameTags(folder.path, _say)
        while not stop.is_requested:
            is_over = bool(folder.read_counters().get("is_finished"))
            n = feed(campaign, run, read)
            tags.hand_on(lambda found: campaign.put_frame_tags(run, found))
            if is_over and not stop.is_requested:
                campaign.close_run(run)
                _say(f"has all {counted(campaign.n_shots(run), 'shot')}")
                return DONE
            if n == 0:
                _pause(_LOOK_EVERY_S, stop)
    return STOPPED


ROLES: dict[str, Callable[[LiveFolder, StopRequests], int]] = {
    "worker": receive,
    "map": reconstruct,
    "database": feed_campaign,
}


def main(role: str, path: Path) -> int:
    """Run a role; returns the exit status."""
    _leave_with_parent()
    warnings.showwarning = lambda message, *_: _say(str(message))
    folder = LiveFolder(path)
    try:
        with StopRequests() as stop, ExitStack() as stack:
            _take_lock(stack, role, folder, stop)
            return ROLES[role](folder, stop)
    except RunStopped:
        return STOPPED
    except OrienteerError as error:
        _say(f"{error.message} {error.hint}")
        return NO_USE if isinstance(error, NoUse) else 1


def note_damage(folder: LiveFolder) -> dict[str, int]:
    """Report damaged files of the journal; returns how many there are and how much they held, by name."""
    reader = JournalReader(folder.path)
    reader.refresh()
    for span in reader.damaged:
        _say(span.sentence)
        folder.log.append("damaged", reason=span.sentence)
    if not reader.damaged:
        return {}
    return {
        "damaged_files": len(reader.damaged),
        "lost_shots": sum(span.n_shots for span in reader.damaged),
        "lost_hits": sum(span.lost_hits or 0 for span in reader.damaged),
    }


def _take_lock(stack: ExitStack, role: str, folder: LiveFolder, stop: StopRequests) -> None:
    """Lock this role for this process; wait for a predecessor that is about to exit."""
    until = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            stack.enter_context(RunLock(folder.path, f"{role}.lock", f"the {role} of this live run"))
            return
        except FileError:
            if time.monotonic() > until or stop.is_requested:
                raise
            time.sleep(0.1)


def _wait_for_source(
    described: Mapping[str, Any], has_filter: bool, is_stopped: Callable[[], bool]
) -> EventSource | None:
    """Open the source, waiting until it answers; None if the wait is stopped."""
    from orienteer.stream.base import NoAnswer

    is_told = False
    while not is_stopped():
        try:
            return open_sources(described, has_filter)
        except NoAnswer as error:
            if not is_told:
                _say(f"waits for the source: {error.message}")
            is_told = True
        except OrienteerError as error:
            raise NoUse(error.message, error.hint) from error
    return None


def _load_filter(text: str) -> Any:
    keep = load_filter(text)
    if keep is None:
        return None

    def decide(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        with _to_be_mended():
            return keep(columns)

    return decide


def _wait_for_hits(folder: LiveFolder, stop: StopRequests) -> JournalSource | None:
    """Wait for the first hits; None if the wait is stopped, or if the stream ends without a hit."""
    _say("waits for hits")
    while not stop.is_requested:
        # Ask this before looking for hits, so that hits arriving in between are still found.
        is_over = bool(folder.read_counters().get("is_finished"))
        if folder.describe().get("frame_shape"):
            source = JournalSource(folder.path)
            if len(source):
                return source
        if is_over:
            _say("has no hits to begin with")
            return None
        _pause(_LOOK_EVERY_S, stop)
    return None


@contextmanager
def _to_be_mended() -> Iterator[None]:
    """Turn errors inside the block into NoUse: the user has to fix them, starting again would not help."""
    try:
        yield
    except OrienteerError as error:
        raise NoUse(error.message, error.hint) from error


def _pause(seconds: float, stop: StopRequests) -> None:
    until = time.monotonic() + seconds
    while not stop.is_requested and time.monotonic() < until:
        time.sleep(0.05)


def _leave_with_parent() -> None:
    """Send SIGTERM to this process when its standard input ends: its parent is gone."""

    def watch() -> None:
        with suppress(OSError, ValueError):
            while os.read(sys.stdin.fileno(), 1024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _say_step(step: Any) -> None:
    agrees = f", halves agree to {step.agrees_to_A:.1f} A" if step.agrees_to_A else ""
    _say(f"round {step.iteration} with {counted(step.n_hits, 'hit')}{agrees}")


def _say(words: str) -> None:
    with suppress(OSError):
        print(" ".join(words.split()), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
