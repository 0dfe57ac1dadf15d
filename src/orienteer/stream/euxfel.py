"""EuxfelSource: a run of the European XFEL, complete or still being recorded, as one event per pulse."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.detector.detector import Detector
from orienteer.errors import FileError, OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.base import NoAnswer
from orienteer.stream.counters import StreamCounters
from orienteer.stream.euxfel_files import RunFiles
from orienteer.stream.euxfel_values import TrainValues
from orienteer.stream.events import Chosen, Events, Position
from orienteer.stream.trains import PULSE_BITS, module_of, train_event_id

_LOOK_EVERY_S = 1.0


@dataclass(frozen=True)
class _Train:
    """The n pulses of a train that all M modules have.

    pulse : (n,) their numbers in the files; number : (n,) the same counted from 0 within the train.
    row : (n, M) the row of each pulse in the file of each module.
    n_dropped, n_duplicates : pulses that only some modules have, and pulses that are stored again.
    """

    train: int
    pulse: NDArray[np.uint64]
    number: NDArray[np.int64]
    row: NDArray[np.int64]
    n_dropped: int
    n_duplicates: int


class EuxfelSource:
    """Events of a run, matched over the modules of a detector by train and pulse; small data come first.

    run : the folder of a run, its files, or a run that EXtra-data has opened (``open_run``).
    detector_name : such as "SPB_DET_AGIPD1M-1"; may be left out if the run has one detector of modules.
    key : the data of a module below its source; if they have an axis of 1 or 2 after that of the rows (raw
        data and gain), the first entry is used.
    columns : further columns by name, each a (source, key) as EXtra-data names them, with one value per train
        or per pulse; NaN if a train has none.
    n_modules : modules that the detector has; by default those that have a file when the run is opened.
    follow : the run is still being recorded: wait for new sequence files, and for old ones to grow.
    quiet_s : stop after so many seconds without a file that is new or has grown.
    connect_s : seconds to wait for the first files of a run that is followed.

    Trains come in order.  A pulse that only some modules have is dropped and counted, once all modules have
    later trains or the run is complete; so is a pulse whose number is outside 0 to 65535.  If a number occurs
    twice in a train, the last pulse is used and the others are duplicates.
    """

    detector: Detector | None = None

    def __init__(
        self,
        run: str | PathLike[str] | Iterable[Path] | Any,
        most_events: int = 256,
        *,
        detector_name: str | None = None,
        key: str = "image.data",
        columns: Mapping[str, tuple[str, str]] | None = None,
        n_modules: int | None = None,
        follow: bool = False,
        quiet_s: float | None = None,
        connect_s: float = 10.0,
    ) -> None:
        self.name = str(run) if isinstance(run, str | PathLike) else "run"
        self._files = RunFiles(_paths_of(run))
        root, _, self._key = key.partition(".")
        self._root = root
        self._values = {name: TrainValues(self._files, *place) for name, place in (columns or {}).items()}
        self.most_events, self.follow, self.quiet_s = most_events, follow, quiet_s
        self.modules, shape = self._await_modules(detector_name, n_modules, connect_s)
        self.counters = StreamCounters()
        self.is_finished = False
        self._train = 0
        self._grew_at = self._look_at = time.monotonic()
        self.frame_shape = (len(self.modules), *shape) if len(self.modules) > 1 else shape

    @property
    def n_pixels(self) -> int:
        """Pixels of all modules."""
        return math.prod(self.frame_shape)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The events of the next trains; None if nothing came in this time."""
        until = time.monotonic() + timeout_s
        while not self.is_finished:
            events = self._take()
            if events is not None:
                return events
            now = time.monotonic()
            is_quiet = self.quiet_s is not None and now - self._grew_at > self.quiet_s
            if self.follow and is_quiet:
                self.follow = False  # no longer wait for other modules
            elif not self.follow:
                self.is_finished = True
            elif now >= self._look_at:
                self._look_at = now + _LOOK_EVERY_S
                self._grew_at = now if self._files.look() else self._grew_at
            elif now >= until:
                break
            else:
                time.sleep(min(until - now, 0.05))
        return None

    def seek(self, position: Position) -> None:
        """Go on after the train of this position."""
        train = position.get("train")
        if not isinstance(train, int) or train < 0:
            raise OrienteerError(
                f"{self.name}: {dict(position)} is not a position in a run.",
                "Was the live run begun with another source? Give that one, or another --out.",
            )
        last = max(int(self._files.sources[m].train.max(initial=0)) for m in self.modules)
        if last < train and not self.follow:
            raise OrienteerError(
                f"{self.name}: ends with train {last}, but train {train} was received before.",
                "Give the source that the live run was begun with, or another --out.",
            )
        self._train, self.is_finished = train, False

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def _take(self) -> Events | None:
        """Events of whole trains after the last ones, until there are enough; None if there are none."""
        trains = np.unique(np.concatenate([self._files.sources[m].train for m in self.modules]))
        trains = trains[trains > np.uint64(self._train)]
        if self.follow:
            horizon = min(int(self._files.sources[m].train.max(initial=0)) for m in self.modules)
            trains = trains[trains <= np.uint64(horizon)]
        found: list[_Train] = []
        n_events = 0
        for train in trains.tolist():
            found.append(self._train_of(train))
            n_events += len(found[-1].pulse)
            if n_events >= self.most_events:
                break
        n_dropped = sum(one.n_dropped for one in found)
        # Only now: if a file cannot be read, the trains before it must come when it can.
        self._train = found[-1].train if found else self._train
        self.counters.duplicates += sum(one.n_duplicates for one in found)
        if not n_events and not n_dropped:
            return None
        self.counters.received += n_events + n_dropped
        self.counters.dropped += n_dropped
        train_id = np.repeat(
            np.array([one.train for one in found], np.uint64), [len(one.pulse) for one in found]
        )
        pulse_id = np.concatenate([one.pulse for one in found])
        event_id = train_event_id(train_id, pulse_id)
        columns = self._columns(train_id, np.concatenate([one.number for one in found]), pulse_id)
        row = np.concatenate([one.row for one in found])

        def read(chosen: Chosen) -> Patterns:
            frames = self._frames(train_id[chosen], row[chosen])
            return Patterns(frames, event_id[chosen], {name: c[chosen] for name, c in columns.items()})

        return Events(event_id, columns, {"train": self._train}, read, n_dropped)

    def _train_of(self, train: int) -> _Train:
        """The pulses of a train that all modules have."""
        row_of: list[dict[int, int]] = []
        n_duplicates = 0
        for module in self.modules:
            first, pulses = self._pulses(module, train)
            row_of.append({pulse: first + k for k, pulse in enumerate(pulses)})
            n_duplicates = max(n_duplicates, len(pulses) - len(row_of[-1]))
        every = np.array(sorted(set().union(*row_of)), np.int64)
        is_common = np.array([all(pulse in one for one in row_of) for pulse in every.tolist()], bool)
        is_common &= (every >= 0) & (every < 1 << PULSE_BITS)
        pulse = every[is_common]
        row = np.array([[one[p] for one in row_of] for p in pulse.tolist()], np.int64)
        return _Train(
            train,
            pulse.astype(np.uint64),
            np.flatnonzero(is_common),
            row.reshape(-1, len(self.modules)),
            len(every) - len(pulse),
            n_duplicates,
        )

    def _pulses(self, module: str, train: int) -> tuple[int, list[int]]:
        """The first row of a train in the file of a module, and the pulse of every row."""
        place = self._files.sources[module].of(train)
        if place is None:
            return 0, []
        file, span = place
        name = f"INSTRUMENT/{module}/"
        number = next((k for k in ("pulseId", "cellId") if self._files.shape(file, name + k)), None)
        if number is None:
            return span.start, list(range(span.stop - span.start))
        pulses = self._files.read(file, name + number, span).reshape(-1)
        return span.start, pulses.astype(np.int64).tolist()

    def _frames(self, train_id: NDArray[np.uint64], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Frames (n, P) at these rows of the files, module by module and train by train."""
        frames: NDArray[Any] | None = None
        for m, module in enumerate(self.modules):
            for train in np.unique(train_id).tolist():
                at = np.flatnonzero(train_id == np.uint64(train))
                place = self._files.sources[module].of(train)
                if place is None:
                    raise FileError(
                        self.name, f"no longer has train {train} of {module}.", "Put back its files."
                    )
                found = self._files.read(place[0], f"INSTRUMENT/{module}/{self._key_path}", rows[at, m])
                if found.ndim == 4:
                    found = found[:, 0]
                if frames is None:
                    n_module = math.prod(found.shape[1:])
                    frames = np.empty((len(train_id), len(self.modules), n_module), found.dtype)
                frames[at, m] = found.reshape(len(at), -1)
        return (
            np.empty((0, self.n_pixels), np.uint16) if frames is None else frames.reshape(len(train_id), -1)
        )

    def _columns(
        self, train_id: NDArray[np.uint64], number: NDArray[np.int64], pulse_id: NDArray[np.uint64]
    ) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {"train_id": train_id, "pulse_id": pulse_id}
        known = self._files.sources[self.modules[0]]
        at = np.minimum(np.searchsorted(known.train, train_id), max(0, len(known.train) - 1))
        if len(known.train):
            columns["time_s"] = known.time_s[at]
        for name, values in self._values.items():
            columns[name] = values.of_pulses(train_id, number)
        return columns

    @property
    def _key_path(self) -> str:
        return self._key.replace(".", "/")

    def _await_modules(
        self, detector_name: str | None, n_modules: int | None, connect_s: float
    ) -> tuple[list[str], tuple[int, ...]]:
        """The sources of the modules, and the shape of one; waits for them at most this long."""
        until = time.monotonic() + connect_s
        while True:
            self._files.look()
            try:
                modules = self._find_modules(detector_name, n_modules)
                return modules, self._module_shape(modules)
            except NoAnswer:
                if time.monotonic() >= until:
                    self.close()
                    raise
            time.sleep(min(connect_s, _LOOK_EVERY_S))

    def _find_modules(self, detector_name: str | None, n_modules: int | None) -> list[str]:
        """The sources of the modules with their root, in the order of their numbers."""
        found: dict[str, dict[int, str]] = {}
        for source in self._files.sources:
            device, _, root = source.rpartition("/")
            module = module_of(device)
            if module is not None and root == self._root:
                found.setdefault(module[0], {})[module[1]] = source
        if detector_name is not None:
            found = {name: modules for name, modules in found.items() if name == detector_name}
        if len(found) != 1:
            why = f"has the detectors {', '.join(sorted(found))}" if found else "has no modules of a detector"
            skipped = "".join(f" {n}: {r}" for n, r in list(self._files.skipped.items())[:1])
            error = FileError(
                self.name, f"{why} (looked for '{self._root}').{skipped}", "Give detector_name."
            )
            raise NoAnswer(error.message, error.hint) if self.follow and not found else error
        ((name, modules),) = found.items()
        if n_modules is not None and len(modules) != n_modules:
            have = counted(len(modules), f"module of {name} has a file", f"modules of {name} have files")
            what = f"{self.name}: {have}, not {n_modules}."
            is_early = self.follow and len(modules) < n_modules
            raise NoAnswer(what) if is_early else OrienteerError(what, "Correct n_modules, or leave it out.")
        return [modules[number] for number in sorted(modules)]

    def _module_shape(self, modules: list[str]) -> tuple[int, ...]:
        for module in modules:
            rows = self._files.sources[module]
            for file in np.unique(rows.file).tolist():
                shape = self._files.shape(file, f"INSTRUMENT/{module}/{self._key_path}")
                if shape is not None and len(shape) in (3, 4):
                    return shape[-2:]
        error = FileError(
            self.name,
            f"has no frames at '{self._root}.{self._key}' of {modules[0]}.",
            "Give another key (--option key=image.data) or detector (--option detector_name=NAME).",
        )
        raise NoAnswer(error.message, error.hint) if self.follow else error


def _paths_of(run: Any) -> Path | list[Path]:
    """The folder or the files of a run; "proposal=7927,run=42" is looked up by EXtra-data."""
    if isinstance(run, str) and run.startswith("proposal="):
        run = _open_run(run)
    if isinstance(run, str | PathLike):
        path = Path(run)
        if not path.exists():
            raise FileError(path, "does not exist.", "Give the folder of a run.")
        return path if path.is_dir() else [path]
    files = getattr(run, "files", run)
    return [Path(getattr(file, "filename", file)) for file in files]


def _open_run(text: str) -> Any:
    try:
        from extra_data import open_run
    except ImportError as error:
        raise OrienteerError(
            "finding runs by proposal and number needs EXtra-data, which is not installed.",
            "Run: pip install extra_data, or give the folder of the run.",
        ) from error
    try:
        named = dict(part.split("=", 1) for part in text.split(","))
        return open_run(proposal=int(named.pop("proposal")), run=int(named.pop("run")), **named)
    except (KeyError, ValueError) as error:
        raise OrienteerError(f"'{text}' does not name a run.", "Write: proposal=7927,run=42") from error
