"""psana2, as a stand-in with its interface: small data go through a callback before frames are read."""

import json
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.stream.filtering import Filter
from orienteer.stream.opening import open_stream
from orienteer.stream.psana import PsanaSource

N_EVENTS = 40


def stamp(k: int) -> int:
    return (1000 << 32) + 1000 * k


class StandInEvent:
    """An event of psana; frames are there only if its big data were read."""

    def __init__(self, k: int, has_big_data: bool) -> None:
        self.k, self.timestamp, self.has_big_data = k, stamp(k), has_big_data


class StandInRun:
    """A run: of small data alone, as the callback sees it, or of events whose frames are read."""

    def __init__(self, source: "StandInDataSource", ks: Iterator[int], has_big_data: bool) -> None:
        self._source, self._ks, self._has_big_data = source, ks, has_big_data

    def events(self) -> Iterator[StandInEvent]:
        for k in self._ks:
            if self._has_big_data:
                self._source.big_data_read.append(k)
            yield StandInEvent(k, self._has_big_data)

    def Detector(self, name: str) -> Any:
        if name == "epix":

            def raw(event: StandInEvent) -> np.ndarray | None:
                assert event.has_big_data, "a frame was asked for in the callback"
                return None if event.k == 7 else np.full((2, 3, 4), event.k, np.uint16)

            def calib(event: StandInEvent) -> np.ndarray | None:
                frame = raw(event)
                return None if frame is None else frame.astype(np.float32) / 2

            return SimpleNamespace(raw=SimpleNamespace(raw=raw, calib=calib))
        if name == "ebeam":
            energy = lambda event: None if event.k == 3 else 9000.0 + event.k  # noqa: E731
            return SimpleNamespace(raw=SimpleNamespace(ebeamPhotonEnergy=energy))
        if name == "motor":
            return lambda event: 0.5 * event.k
        raise KeyError(f"no detector named {name}")


class StandInDataSource:
    """Two runs; small data are looked at in blocks of eight ahead of the frames, as psana does."""

    big_data_read: list[int] = []  # noqa: RUF012

    def __init__(self, smd_callback: Callable[[StandInRun], Iterator[StandInEvent]] | None = None) -> None:
        self._callback = smd_callback

    def runs(self) -> Iterator[StandInRun]:
        for ks in (range(25), range(25, N_EVENTS)):
            yield StandInRun(self, self._passed(ks), True)

    def _passed(self, ks: range) -> Iterator[int]:
        if self._callback is None:
            yield from ks
            return
        chosen = self._callback(StandInRun(self, iter(ks), False))
        block: list[int] = []
        for event in chosen:
            block.append(event.k)
            if len(block) == 8:
                yield from block
                block = []
        yield from block


@pytest.fixture(autouse=True)
def nothing_read() -> None:
    StandInDataSource.big_data_read = []


def collect(source: PsanaSource) -> tuple[list[int], list[Any]]:
    ids, batches = [], []
    while not source.is_finished:
        if (events := source.next(1.0)) is not None:
            ids += [(one - stamp(0)) // 1000 for one in events.event_id.tolist()]
            batches.append(events)
    return ids, batches


def test_every_event_with_a_frame_comes_by_its_time_stamp() -> None:
    source = PsanaSource(
        StandInDataSource, "epix", 9, columns={"energy": "ebeam.raw.ebeamPhotonEnergy", "x": "motor"}
    )
    assert source.frame_shape == (2, 3, 4)
    ids, batches = collect(source)
    assert ids == [k for k in range(N_EVENTS) if k != 7]
    for events in batches:
        k = (events.event_id - np.uint64(stamp(0))) // np.uint64(1000)
        assert np.array_equal(events.patterns().frames, np.repeat(k[:, None] / 2, 24, axis=1))
        assert np.array_equal(events.columns["x"], 0.5 * k)
        assert np.array_equal(events.columns["energy"], np.where(k == 3, np.nan, 9000.0 + k), equal_nan=True)
    assert (source.counters.received, source.counters.dropped) == (N_EVENTS, 1)
    assert sum(events.n_dropped for events in batches) == 1


def test_the_filter_decides_before_frames_are_read() -> None:
    even = Filter(lambda columns: columns["x"] % 1 == 0, "even")
    source = PsanaSource(
        StandInDataSource, "epix", 9, columns={"x": "motor"}, filter=even, is_calibrated=False
    )
    StandInDataSource.big_data_read.clear()
    ids, batches = collect(source)
    assert ids == list(range(0, N_EVENTS, 2))
    assert StandInDataSource.big_data_read == ids
    assert sum(events.n_filtered for events in batches) == N_EVENTS // 2
    assert source.counters.received == N_EVENTS
    assert batches[0].patterns(np.array([1])).frames.dtype == np.uint16


@pytest.mark.parametrize("n_batches", range(1, 6))
def test_a_restart_counts_every_event_once(n_batches: int) -> None:
    def opened() -> PsanaSource:
        odd = Filter(lambda columns: columns["x"] % 1 != 0, "odd")
        return PsanaSource(StandInDataSource, "epix", 3, columns={"x": "motor"}, filter=odd)

    source = opened()
    batches = [source.next() for _ in range(n_batches)]
    again = opened()
    again.seek(json.loads(json.dumps(batches[-1].position)))
    _, rest = collect(again)
    batches += rest
    ids = [(one - stamp(0)) // 1000 for events in batches for one in events.event_id.tolist()]
    assert ids == [k for k in range(1, N_EVENTS, 2) if k != 7]
    assert sum(events.n_filtered for events in batches) == N_EVENTS // 2
    assert sum(events.n_dropped for events in batches) == 1


def test_a_frame_that_cannot_be_calibrated_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    source = PsanaSource(StandInDataSource, "epix", 4)
    events = source.next()
    monkeypatch.setattr(source._detectors, "call", lambda *_: None)
    with pytest.raises(OrienteerError, match="no frame 'calib'"):
        events.patterns()


def test_an_address_opens_the_data_source_of_psana(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def data_source(**named: Any) -> StandInDataSource:
        asked.append({name: value for name, value in named.items() if name != "smd_callback"})
        return StandInDataSource(named.get("smd_callback"))

    module = ModuleType("psana")
    module.DataSource = data_source  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "psana", module)
    source = open_stream("psana:exp=xpptut15,run=14,detector=epix,dir=/data")
    assert len(source.next()) > 0
    assert asked[0] == {"exp": "xpptut15", "run": 14, "dir": "/data"}
    for text, words in (
        ("exp=a,run=b,detector=epix", "does not name a run"),
        ("exp=a,run=1", "does not name a detector"),
    ):
        with pytest.raises(OrienteerError, match=words):
            open_stream("psana:" + text)
    with pytest.raises(OrienteerError, match="no detector 'cspad'"):
        open_stream("psana:exp=a,run=1,detector=cspad")


def test_without_psana_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psana", None)
    with pytest.raises(OrienteerError, match="psana2"):
        open_stream("psana:exp=a,run=1,detector=epix")
