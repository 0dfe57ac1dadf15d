"""Events of several detectors, matched by id: late, missing and double parts are counted, never mixed up."""

import json
from collections.abc import Iterable

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.building import EventBuilder
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events, events_of


class Scripted:
    """A source that gives the listed ids, batch by batch; the frames say which event and which source."""

    detector = None

    def __init__(
        self, name: str, batches: Iterable[Iterable[int]], number: int = 0, n_pixels: int = 2
    ) -> None:
        self.name, self.number, self.n_pixels = name, number, n_pixels
        self.frame_shape = (n_pixels,)
        self.batches = [list(batch) for batch in batches]
        self.counters = StreamCounters()
        self.at = 0

    @property
    def is_finished(self) -> bool:
        return self.at >= len(self.batches)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        if self.is_finished:
            return None
        ids = np.array(self.batches[self.at], np.uint64)
        self.at += 1
        frames = np.repeat(ids[:, None] * np.uint64(10), self.n_pixels, axis=1) + np.uint64(self.number)
        columns = {"value": ids.astype(float) + 0.1 * self.number, f"only_{self.name}": ids.astype(float)}
        return events_of(Patterns(frames.astype(np.int64), ids, columns), {"batch": self.at})

    def seek(self, position) -> None:
        self.at = position["batch"]

    def close(self) -> None:
        self.at = len(self.batches)


def batched(ids: Iterable[int], size: int) -> list[list[int]]:
    ids = list(ids)
    return [ids[k : k + size] for k in range(0, len(ids), size)]


def collect(builder: EventBuilder) -> list[Events]:
    got = []
    while not builder.is_finished:
        if (events := builder.next(0.5)) is not None:
            got.append(events)
    return got


def ids_of(batches: list[Events]) -> list[int]:
    return [one for events in batches for one in events.event_id.tolist()]


def test_parts_that_come_in_another_order_and_batch_are_matched() -> None:
    order = np.random.default_rng(0).permutation(200).tolist()
    builder = EventBuilder(
        {"one": Scripted("one", batched(range(200), 17)), "two": Scripted("two", batched(order, 31), 1, 3)},
        most_events=23,
    )
    got = collect(builder)
    assert sorted(ids_of(got)) == list(range(200))
    for events in got:
        patterns = events.patterns()
        assert np.array_equal(patterns.frames[:, :2], np.repeat(10 * events.event_id[:, None], 2, 1))
        assert np.array_equal(patterns.frames[:, 2:], np.repeat(10 * events.event_id[:, None] + 1, 3, 1))
        assert np.array_equal(events.columns["value"], events.event_id)
        assert np.allclose(events.columns["two.value"], events.event_id + 0.1)
        assert np.array_equal(events.columns["only_two"], events.event_id)
        chosen = np.array([len(events) - 1, 0])
        assert np.array_equal(events.patterns(chosen).frames, patterns.frames[chosen])
    assert builder.frame_shape == (5,)
    assert builder.counters.received == 200
    assert builder.counters.dropped == builder.counters.late == builder.counters.duplicates == 0


def test_frames_of_one_source_alone_are_taken_when_asked_for() -> None:
    sources = {name: Scripted(name, [[1, 2]], k) for k, name in enumerate(("small", "camera"))}
    builder = EventBuilder(sources, frames=["camera"])
    (events,) = collect(builder)
    assert events.patterns().frames.tolist() == [[11, 11], [21, 21]]
    assert builder.frame_shape == (2,)
    stacked = EventBuilder({name: Scripted(name, [[1]], k) for k, name in enumerate("ab")})
    assert stacked.frame_shape == (2, 2)


def test_events_that_stay_incomplete_are_dropped_and_counted() -> None:
    builder = EventBuilder(
        {
            "one": Scripted("one", batched(range(100), 10)),
            "two": Scripted("two", batched(range(0, 100, 2), 5)),
        }
    )
    got = collect(builder)
    assert ids_of(got) == list(range(0, 100, 2))
    assert sum(events.n_dropped for events in got) == 50
    counters = builder.counters
    assert (counters.received, counters.dropped) == (100, 50)


def test_no_more_events_wait_than_the_window_holds() -> None:
    one, two = Scripted("one", batched(range(1000), 10)), Scripted("two", batched(range(1, 1000, 2), 10))
    builder = EventBuilder({"one": one, "two": two}, window=40, patience_s=0.0)
    most = 0
    while not builder.is_finished:
        builder.next(0.5)
        most = max(most, len(builder._waiting))
    assert most <= 2 * 2 * 10
    assert builder.counters.received == 1000


def test_an_event_that_never_becomes_complete_neither_holds_up_the_others_nor_their_memory() -> None:
    one = Scripted("one", batched(range(3000), 10))
    two = Scripted("two", batched((k for k in range(3000) if k != 5), 10), 1)
    builder = EventBuilder({"one": one, "two": two}, window=100, patience_s=600.0)
    got, most = [], 0
    while not builder.is_finished:
        if (events := builder.next(0.0)) is not None:
            got += events.event_id.tolist()
        else:
            assert builder.is_finished, "the sources wait for each other"
        most = max(most, *(sum(map(len, batches)) for batches in builder._outstanding.values()))
    assert got == [k for k in range(3000) if k != 5]
    assert builder.counters.dropped == 1
    assert builder.counters.late == 0
    assert most <= 100 + 10


def test_sources_that_have_nothing_in_common_do_not_wait_for_each_other() -> None:
    one = Scripted("one", batched(range(1000), 10))
    two = Scripted("two", [*batched(range(1000, 2000), 10), [3000]])
    builder = EventBuilder({"one": one, "two": two}, window=100, patience_s=600.0)
    n_dropped = 0
    for _ in range(1000):
        if (events := builder.next(0.0)) is not None:
            assert not len(events)
            n_dropped += events.n_dropped
    assert builder.is_finished
    assert n_dropped == 2001


def test_what_is_complete_goes_out_before_more_is_read() -> None:
    sources = {name: Scripted(name, batched(range(5000), 100)) for name in ("one", "two")}
    builder = EventBuilder(sources, most_events=10, patience_s=0.0)
    most = 0
    while not builder.is_finished:
        builder.next(0.0)
        most = max(most, len(builder._waiting))
    assert most <= 100


def test_a_part_that_comes_after_its_event_was_dropped_is_late() -> None:
    one = Scripted("one", batched(range(60), 2))
    two = Scripted("two", [*batched(range(1, 60, 2), 5), *batched(range(0, 60, 2), 2)])
    builder = EventBuilder({"one": one, "two": two}, window=12, patience_s=0.0)
    got = collect(builder)
    assert 0 not in ids_of(got)
    counters = builder.counters
    assert counters.late == counters.dropped > 0
    assert counters.received == 60 == len(ids_of(got)) + counters.dropped


def test_parts_that_come_twice_are_counted_once() -> None:
    one = Scripted("one", [[1, 2, 2], [1, 3], [2]])
    two = Scripted("two", [[1, 2, 3]])
    builder = EventBuilder({"one": one, "two": two})
    got = collect(builder)
    assert sorted(ids_of(got)) == [1, 2, 3]
    assert builder.counters.duplicates == 3
    assert builder.counters.received == 3


@pytest.mark.parametrize("window", [12, 8192])
@pytest.mark.parametrize("seed", range(20))
def test_a_restart_anywhere_gives_every_event_once(seed: int, window: int) -> None:
    rng = np.random.default_rng(seed)
    n = 400
    parts: dict[str, list[list[int]]] = {}
    for name in ("one", "two", "three"):
        ids = np.flatnonzero(rng.random(n) < 0.95)
        ids = ids[np.argsort(ids + rng.normal(0, 3, len(ids)), kind="stable")]  # a little out of order
        parts[name] = batched(ids.tolist(), int(rng.integers(3, 12)))
    whole = set(range(n)).intersection(*({one for b in batches for one in b} for batches in parts.values()))
    some = set().union(*({one for b in batches for one in b} for batches in parts.values()))
    got: list[int] = []
    n_dropped, position = 0, None
    while True:
        sources = {name: Scripted(name, b) for name, b in parts.items()}
        builder = EventBuilder(sources, window=window, most_events=7)
        if position is not None:
            builder.seek(position)
        for _ in range(int(rng.integers(1, 6))):
            events = builder.next(0.1)
            if events is not None:
                got += events.event_id.tolist()
                n_dropped += events.n_dropped
                position = json.loads(json.dumps(events.position))
        if builder.is_finished:
            break
    assert sorted(got) == sorted(whole)
    assert n_dropped == len(some) - len(whole)


def test_a_part_that_its_source_gave_up_is_a_gap_and_its_event_is_counted_once() -> None:
    class Losing(Scripted):
        def next(self, timeout_s: float = 1.0) -> Events | None:
            events = super().next(timeout_s)
            return Events(events.event_id, events.columns, events.position, events.read, n_dropped=1)

    builder = EventBuilder({"one": Scripted("one", [[1, 2, 3]]), "two": Losing("two", [[1, 3]])})
    assert ids_of(collect(builder)) == [1, 3]
    counters = builder.counters
    assert (counters.received, counters.dropped, counters.gaps) == (3, 1, 1)


def test_a_builder_without_frames_is_refused() -> None:
    with pytest.raises(OrienteerError, match="frames"):
        EventBuilder({"one": Scripted("one", [])}, frames=["two"])
    with pytest.raises(OrienteerError, match="at least one"):
        EventBuilder({})
