"""FolderSource: a folder of runs in which files appear and grow, as one stream of events."""

from __future__ import annotations

import hashlib
import math
import time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.base import NoAnswer
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Chosen, Events, Position
from orienteer.stream.growing import GrowingSource
from orienteer.stream.seen import SeenIds

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

ENDINGS = (".h5", ".hdf5", ".cxi", ".emc", ".npy", ".npz")
_LOOK_EVERY_S = 0.25


class FolderSource:
    """Events of all files of patterns in a folder and its subfolders, whenever they appear or grow.

    Files are read in turns in the order of their names, each from its first frame on, and looked at again
    when they have changed.  Frames without event ids get as id 2^32 times a number made from the file's name,
    plus their number in the file.  A file is left out if it cannot be read (yet), if its frames have another
    shape, or if it has become shorter; ``skipped`` says why.

    follow : wait for new files and frames; otherwise read only what is there now.
    quiet_s : stop after so many seconds without a new frame.
    connect_s : seconds to wait for the first file.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        most_events: int = 256,
        *,
        follow: bool = True,
        quiet_s: float | None = None,
        connect_s: float = 10.0,
        geometry: Any = None,
    ) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FileError(self.folder, "is not a folder.", "Give the folder in which runs appear.")
        self.name = str(folder)
        self.most_events, self.follow, self.quiet_s, self.geometry = most_events, follow, quiet_s, geometry
        self.counters = StreamCounters()
        self.is_finished = False
        self.frame_shape: tuple[int, ...] = ()
        self.detector: Detector | None = None
        self.skipped: dict[str, str] = {}
        self._seen_ids = SeenIds()
        self._given: dict[str, int] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        # Name and source of the file whose turn it is, and how many frames it had when it was opened.
        self._open: tuple[str, GrowingSource, int] | None = None
        self._last = Path()
        self._new_at = self._look_at = time.monotonic()
        until = time.monotonic() + connect_s
        while not self._open_changed():
            if time.monotonic() >= until:
                why = "".join(f" {name}: {reason}" for name, reason in list(self.skipped.items())[:1])
                raise NoAnswer(
                    f"{folder}: no file of patterns appeared within {connect_s:g} s.{why}",
                    f"Files end in {', '.join(ENDINGS)}.",
                )
            time.sleep(_LOOK_EVERY_S)

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch; None if nothing came in this time."""
        until = time.monotonic() + timeout_s
        while not self.is_finished:
            events = self._go_on()
            if events is not None:
                self._new_at = time.monotonic()
                return events
            is_quiet = self.quiet_s is not None and time.monotonic() - self._new_at > self.quiet_s
            if is_quiet or not self.follow:
                self.is_finished = True
            elif (left := until - time.monotonic()) > 0:
                time.sleep(min(left, _LOOK_EVERY_S))
            else:
                break
        return None

    def seek(self, position: Position) -> None:
        """Go on right after the batch that had this position: it counts the frames taken of each file."""
        frames = position.get("frames")
        if not isinstance(frames, dict) or not all(isinstance(n, int) for n in frames.values()):
            raise OrienteerError(
                f"{self.name}: {dict(position)} is not a position in a folder.",
                "Was the live run begun with another source? Give that one, or another --out.",
            )
        self.close()
        self._given, self._seen, self._last = dict(frames), {}, Path()
        # Events that now come again are no duplicates, as they were asked for; look at every file afresh.
        self._seen_ids, self._look_at, self.is_finished = SeenIds(), 0.0, False

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _go_on(self) -> Events | None:
        """Events of the open file, or of the next one that has changed; None if nothing is new."""
        while True:
            if self._open is None:
                if time.monotonic() < self._look_at:
                    return None
                if not self._open_changed():
                    self._look_at = time.monotonic() + _LOOK_EVERY_S
                    return None
            name, source, n_frames = self._open  # type: ignore[misc]
            try:
                events = None if self._given.get(name, 0) >= n_frames else source.next(0)
                if events is not None:
                    return self._take(name, source, events)
                self._open = None  # not closed: frames of the last batch may still be asked for
            except FileError as error:
                self.skipped[name] = error.reason
                self.close()
                if self.follow:  # it may be readable a moment later, whether or not it has changed
                    self._seen.pop(name, None)
                    self._look_at = time.monotonic() + _LOOK_EVERY_S
                    return None

    def _open_changed(self) -> bool:
        """Open a file that has changed; names after the last one come first, so that each has its turn."""
        paths = (path for path in self.folder.rglob("*") if path.name.lower().endswith(ENDINGS))
        visible = (path for path in paths if not path.name.startswith("."))
        for path in sorted(visible, key=lambda path: (path <= self._last, path)):
            name = str(path.relative_to(self.folder))
            try:
                status = path.stat()
            except OSError:  # gone again
                continue
            mark = (status.st_size, status.st_mtime_ns)
            if self._seen.get(name) == mark:
                continue
            self._seen[name] = mark
            try:
                source = GrowingSource(path, self.most_events, follow=False, geometry=self.geometry)
            except OrienteerError as error:
                self.skipped[name] = error.message
                continue
            if self.frame_shape and source.frame_shape != self.frame_shape:
                self.skipped[name] = (
                    f"has frames of {source.frame_shape}; those of earlier files have {self.frame_shape}."
                )
                source.close()
                continue
            n_frames = len(source.source)
            if n_frames < self._given.get(name, 0):
                self.skipped[name] = (
                    f"has {counted(n_frames, 'frame')}; {self._given[name]} were taken from it before."
                )
                source.close()
                continue
            self.skipped.pop(name, None)
            self.frame_shape = source.frame_shape
            self.detector = self.detector or source.detector
            source.seek({"frame": self._given.get(name, 0)})
            self._open, self._last = (name, source, n_frames), path
            return True
        return False

    def _take(self, name: str, source: GrowingSource, events: Events) -> Events:
        event_id = events.event_id
        if not source.has_names:
            event_id = event_id + np.uint64(number_of(name) << 32)
        n_before, self._given[name] = self._given.get(name, 0), events.position["frame"]

        def read(chosen: Chosen) -> Patterns:
            return events.patterns(chosen).with_event_ids(event_id[chosen])

        named = Events(event_id, events.columns, {"frames": dict(self._given)}, read)
        is_new: NDArray[np.bool_] = self._seen_ids.take(event_id)
        n_new = int(is_new.sum())
        self.counters.received += n_new
        self.counters.duplicates += self._given[name] - n_before - n_new
        return named if n_new == len(event_id) else named.take(is_new)


def number_of(name: str) -> int:
    """A number below 2^31 that stands for the name of a file, the same on every machine."""
    digest = hashlib.blake2b(Path(name).as_posix().encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1
