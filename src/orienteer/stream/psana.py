"""PsanaSource: events of psana2 at LCLS, which reads large frames only of events chosen by their small data.

psana passes the small data of every event to a callback, and then reads the frames of those events that the
callback yields.  There the user's filter is applied, and events before a position are skipped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Chosen, Events, Position
from orienteer.stream.filtering import Filter

_MOST_RUNS = 4


class PsanaSource:
    """Events of a data source of psana2; ids are its time stamps, which are unique in an experiment.

    open_data : takes ``smd_callback`` and returns a psana ``DataSource``.
    detector_name : the psana detector that has the frames.
    is_calibrated : read ``raw.calib``, otherwise ``raw.raw``.
    columns : further columns by name, each a detector of psana and the method to call, such as
        "ebeam.raw.ebeamPhotonEnergy"; NaN if an event has none.
    filter : decides by the columns, before frames are read; what it leaves out is counted as filtered.

    Events without a frame are dropped, and counted.  psana waits for events without a time limit, so that
    ``next`` may take longer than ``timeout_s``.
    """

    detector: Detector | None = None

    def __init__(
        self,
        open_data: Callable[..., Any],
        detector_name: str,
        most_events: int = 64,
        *,
        name: str = "psana",
        is_calibrated: bool = True,
        columns: Mapping[str, str] | None = None,
        filter: Filter | None = None,
    ) -> None:
        self.name, self.most_events, self.is_calibrated = name, most_events, is_calibrated
        self.detector_name, self.filter = detector_name, filter
        self.extra_columns = dict(columns or {})
        self.counters = StreamCounters()
        self.is_finished = False
        self._open_data = open_data
        self._detectors = _Detectors()
        self._behind = -1
        self._filtered: list[int] = []
        self._iterator: Iterator[tuple[Any, Any]] | None = None
        self.frame_shape = self._first_shape()

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch; None if no event came in this time."""
        if self.is_finished:
            return None
        if self._iterator is None:
            self._iterator = self._iterate()
        until = time.monotonic() + timeout_s
        found: list[tuple[Any, Any]] = []
        n_dropped = 0
        while len(found) < self.most_events and (not found or time.monotonic() < until):
            try:
                run, event = next(self._iterator)
            except StopIteration:
                self.is_finished = True
                break
            self._behind = int(event.timestamp)
            if self._detectors.call(run, f"{self.detector_name}.raw.raw", event) is None:
                n_dropped += 1
            else:
                found.append((run, event))
        return self._events(found, n_dropped)

    def seek(self, position: Position) -> None:
        """Go on after the event with this time stamp."""
        stamp = position.get("timestamp")
        if not isinstance(stamp, int):
            raise OrienteerError(
                f"{self.name}: {dict(position)} is not a position of psana.",
                "Was the live run begun with another source? Give that one, or another --out.",
            )
        self._behind, self._iterator, self.is_finished, self._filtered = stamp, None, False, []

    def close(self) -> None:
        """Stop asking psana."""
        self._iterator, self.is_finished = None, True

    def _iterate(self) -> Iterator[tuple[Any, Any]]:
        for run in self._open_data(smd_callback=self._let_pass).runs():
            for event in run.events():
                yield run, event

    def _let_pass(self, run: Any) -> Iterator[Any]:
        """psana's callback: the events whose frames are worth reading."""
        behind = self._behind
        for event in run.events():
            stamp = int(event.timestamp)
            if stamp <= behind:
                continue
            if self.filter is not None:
                columns = self._columns([(run, event)])
                if not self.filter(columns, np.array([stamp], np.uint64))[0]:
                    self._filtered.append(stamp)
                    continue
            yield event

    def _events(self, found: list[tuple[Any, Any]], n_dropped: int) -> Events | None:
        # psana filters far ahead: only events filtered before this position belong to this batch.
        is_before = [self.is_finished or stamp <= self._behind for stamp in self._filtered]
        n_filtered = sum(is_before)
        if not found and not n_dropped and not n_filtered:
            return None
        self._behind = max([self._behind, *(s for s, b in zip(self._filtered, is_before, strict=True) if b)])
        self._filtered = [s for s, b in zip(self._filtered, is_before, strict=True) if not b]
        self.counters.received += len(found) + n_dropped + n_filtered
        self.counters.dropped += n_dropped
        self.counters.filtered += n_filtered
        event_id = np.array([int(event.timestamp) for _, event in found], np.uint64)
        columns = self._columns(found)

        def read(chosen: Chosen) -> Patterns:
            rows = np.arange(len(found))[chosen]
            kind = "calib" if self.is_calibrated else "raw"
            frames = [
                self._detectors.call(found[k][0], f"{self.detector_name}.raw.{kind}", found[k][1])
                for k in rows
            ]
            for event, frame in zip(event_id[rows], frames, strict=True):
                if frame is None or np.shape(frame) != self.frame_shape:
                    raise OrienteerError(
                        f"{self.name}: event {event} has no frame '{kind}' of shape {self.frame_shape}.",
                        "Check its calibration constants, or read raw frames with is_calibrated=False.",
                    )
            flat = np.array(frames).reshape(len(rows), self.n_pixels)
            return Patterns(flat, event_id[rows], {name: c[rows] for name, c in columns.items()})

        return Events(event_id, columns, {"timestamp": self._behind}, read, n_dropped, n_filtered)

    def _columns(self, found: list[tuple[Any, Any]]) -> dict[str, NDArray[Any]]:
        stamps = [int(event.timestamp) for _, event in found]
        # A time stamp of LCLS-II: seconds in the upper 32 bits, nanoseconds in the lower.
        columns: dict[str, NDArray[Any]] = {
            "time_s": np.array([(s >> 32) + (s & 0xFFFFFFFF) * 1e-9 for s in stamps], np.float64)
        }
        for name, path in self.extra_columns.items():
            values = [self._detectors.call(run, path, event) for run, event in found]
            columns[name] = np.array([np.nan if value is None else float(value) for value in values])
        return columns

    def _first_shape(self) -> tuple[int, ...]:
        for run in self._open_data().runs():
            for event in run.events():
                frame = self._detectors.call(
                    run, f"{self.detector_name}.raw.{'calib' if self.is_calibrated else 'raw'}", event
                )
                if frame is not None:
                    return tuple(np.asarray(frame).shape)
        raise OrienteerError(
            f"{self.name}: no event has a frame of '{self.detector_name}'.",
            "Give another detector: --option detector_name=NAME",
        )


def import_psana() -> Any:
    """The library; if it is missing, the error says what to do."""
    try:
        import psana
    except ImportError as error:
        raise OrienteerError(
            "reading LCLS data needs psana2, which is not installed.",
            "Load the environment of the facility, in which psana can be imported.",
        ) from error
    return psana


def open_psana(text: str, *, detector_name: str | None = None, **options: Any) -> PsanaSource:
    """The events of "exp=...,run=...,detector=..."; further names go to psana's ``DataSource``."""
    psana = import_psana()
    try:
        named: dict[str, Any] = dict(part.split("=", 1) for part in text.split(","))
        if "run" in named:
            named["run"] = int(named["run"])
    except ValueError as error:
        raise OrienteerError(f"'psana:{text}' does not name a run.", "Write: psana:exp=NAME,run=N") from error
    detector_name = named.pop("detector", detector_name)
    if detector_name is None:
        raise OrienteerError(f"'psana:{text}' does not name a detector.", "Add: ,detector=NAME")
    return PsanaSource(
        lambda **more: psana.DataSource(**named, **more), detector_name, name=f"psana:{text}", **options
    )


class _Detectors:
    """Detectors of psana by run and name, kept because making one takes long."""

    def __init__(self) -> None:
        self._of_run: dict[int, tuple[Any, dict[str, Any]]] = {}

    def call(self, run: Any, path: str, event: Any) -> Any:
        """The result of a detector's method, such as "epix.raw.raw", for an event; None if it has none."""
        name, *rest = path.split(".")
        if id(run) not in self._of_run:
            while len(self._of_run) >= _MOST_RUNS:
                del self._of_run[next(iter(self._of_run))]
            self._of_run[id(run)] = (run, {})  # holding the run keeps its id from being reused
        known = self._of_run[id(run)][1]
        if name not in known:
            try:
                known[name] = run.Detector(name)
            except Exception as error:  # psana raises errors of its own for a missing detector
                raise OrienteerError(
                    f"psana knows no detector '{name}' ({error}).",
                    "See its names with: detnames exp=EXPERIMENT:run=RUN",
                ) from error
        method = known[name]
        for attribute in rest:
            method = getattr(method, attribute, None)
            if method is None:
                raise OrienteerError(
                    f"psana's detector '{name}' has no '{'.'.join(rest)}'.",
                    "See what it has with: detnames exp=EXPERIMENT:run=RUN",
                )
        return method(event)
