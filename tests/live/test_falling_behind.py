"""A worker that falls behind: it works in small pieces, holds little, says what was slow, and catches up."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.hits.finding import HitFinder
from orienteer.hits.settings import HitSettings
from orienteer.live.folder import LiveFolder
from orienteer.live.journal import Journal, Segment, read_shots
from orienteer.live.looking import Looking
from orienteer.live.slow_steps import SlowSteps
from orienteer.live.summary import live_summary
from orienteer.live.worker import MOST_JUDGED_AT_ONCE, Worker
from orienteer.run.events import read_events
from orienteer.run.live_settings import LiveSettings
from orienteer.run.settings import Settings
from orienteer.source.patterns import Patterns
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events, events_of

N_PIXELS = 12


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.cpu_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    time = monotonic

    def process_time(self) -> float:
        return self.cpu_s

    def pass_by(self, seconds: float, share_of_work: float = 1.0) -> None:
        self.now_s += seconds
        self.cpu_s += seconds * share_of_work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("orienteer.live.worker.time", clock)
    monkeypatch.setattr("orienteer.live.slow_steps.time", clock)
    return clock


class TimedSource:
    """Gives so many events, all of them hits, in batches that each take some time to come."""

    name, frame_shape, n_pixels, detector = "timed", (3, 4), N_PIXELS, None

    def __init__(self, clock: Clock, n: int, size: int, seconds: float = 0.0) -> None:
        self.clock, self.n, self.size, self.seconds, self.first = clock, n, size, seconds, 0
        self.counters = StreamCounters()

    @property
    def is_finished(self) -> bool:
        return self.first >= self.n

    def next(self, timeout_s: float = 1.0) -> Events:
        self.clock.pass_by(self.seconds)
        event_id = np.arange(self.first, min(self.first + self.size, self.n), dtype=np.uint64)
        self.first += len(event_id)
        wavelengths = {"wavelength_A": np.full(len(event_id), 2.0)}
        frames = np.ones((len(event_id), N_PIXELS), dtype=np.uint16)
        return events_of(Patterns(frames, event_id, wavelengths), {"first": self.first})


class SlowAnalysis:
    """Takes its time for every hit, and notes how many it was given at once; all are single."""

    def __init__(self, clock: Clock, seconds_per_hit: float) -> None:
        self.clock, self.seconds_per_hit = clock, seconds_per_hit
        self.looks: list[int] = []

    def look(self, hits: Patterns, background: np.ndarray | None) -> dict[str, np.ndarray]:
        self.clock.pass_by(self.seconds_per_hit * len(hits))
        self.looks.append(len(hits))
        return {"size_A": hits.event_id.astype(np.float32), "kind": np.ones(len(hits), dtype=np.uint8)}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "run")
    live.make()
    assert live.begin({"sources": {"timed": "timed"}}, Settings())
    live.meet_source(TimedSource.frame_shape, None)
    return live


def make_worker(
    folder: LiveFolder, source: TimedSource, analysis: SlowAnalysis, commit_every_s: float = 1.0
) -> Worker:
    finder = HitFinder(HitSettings(find=False), N_PIXELS)
    looking = Looking(lambda raw: raw, finder, lambda wavelength_A: analysis)
    return Worker(folder, source, looking, LiveSettings(commit_every_s=commit_every_s))


def check_exactly_once(folder: LiveFolder, n: int) -> None:
    shots = read_shots(folder.path)
    np.testing.assert_array_equal(shots["event_id"], np.arange(n))
    np.testing.assert_array_equal(shots["size_A"], np.arange(n))
    told = live_summary(folder.path)
    assert told["counters"]["processed"] == told["counters"]["received"] == told["hits"] == n
    assert told["kinds"] == {"single": n}


def shots_of_segments(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Shots of each segment that is committed from now on."""
    sizes: list[int] = []
    commit = Journal.commit

    def noted(journal: Journal, segment: Segment) -> int:
        sizes.append(len(segment.shots["event_id"]))
        return commit(journal, segment)

    monkeypatch.setattr(Journal, "commit", noted)
    return sizes


def test_segments_do_not_grow_because_judging_their_hits_takes_long(
    folder: LiveFolder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judging takes half as long as receiving: longer segments would take longer, and be longer still."""
    sizes = shots_of_segments(monkeypatch)
    source, analysis = TimedSource(clock, 20_000, size=10, seconds=0.01), SlowAnalysis(clock, 0.0005)
    make_worker(folder, source, analysis).run(lambda: True)
    check_exactly_once(folder, 20_000)
    assert max(sizes) <= 1000


def test_hits_are_judged_while_they_come_and_few_at_once(folder: LiveFolder, clock: Clock) -> None:
    source, analysis = TimedSource(clock, 1_000, size=10), SlowAnalysis(clock, 0.001)
    worker = make_worker(folder, source, analysis)
    while not source.is_finished:
        worker.take(source.next())
    assert max(analysis.looks) <= MOST_JUDGED_AT_ONCE
    assert sum(analysis.looks) > 1000 - MOST_JUDGED_AT_ONCE
    worker.commit()
    check_exactly_once(folder, 1_000)


def test_many_hits_of_one_batch_are_judged_few_at_once(folder: LiveFolder, clock: Clock) -> None:
    source, analysis = TimedSource(clock, 1_000, size=1_000), SlowAnalysis(clock, 0.001)
    make_worker(folder, source, analysis).run(lambda: True)
    assert max(analysis.looks) <= MOST_JUDGED_AT_ONCE
    check_exactly_once(folder, 1_000)


def test_what_waits_for_a_segment_is_bounded_however_seldom_segments_are_asked_for(
    folder: LiveFolder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.live.worker._MOST_BYTES", 20_000)
    sizes = shots_of_segments(monkeypatch)
    source, analysis = TimedSource(clock, 5_000, size=10), SlowAnalysis(clock, 0.0)
    make_worker(folder, source, analysis, commit_every_s=60).run(lambda: True)
    check_exactly_once(folder, 5_000)
    assert max(sizes) < 300


def test_a_disk_that_hangs_once_does_not_make_segments_rare(
    folder: LiveFolder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing hangs for a minute; the segments behind it come within seconds again."""
    commit, begun_s = Journal.commit, []

    def hangs_once(journal: Journal, segment: Segment) -> int:
        begun_s.append(clock.now_s)
        clock.pass_by(60.0 if len(begun_s) == 3 else 0.0)
        return commit(journal, segment)

    monkeypatch.setattr(Journal, "commit", hangs_once)
    source, analysis = TimedSource(clock, 5_000, size=10, seconds=0.1), SlowAnalysis(clock, 0.0)
    make_worker(folder, source, analysis).run(lambda: True)
    check_exactly_once(folder, 5_000)
    assert max(np.diff(begun_s)) < 60 + 15


def test_a_slow_step_is_told_with_what_it_was_and_whether_it_worked_or_waited(
    folder: LiveFolder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Journal.commit

    def hangs(journal: Journal, segment: Segment) -> int:
        if journal.n_segments == 2:
            clock.pass_by(11.0, share_of_work=0.1)
        return commit(journal, segment)

    monkeypatch.setattr(Journal, "commit", hangs)
    source, analysis = TimedSource(clock, 500, size=10, seconds=0.1), SlowAnalysis(clock, 0.0)
    make_worker(folder, source, analysis).run(lambda: True)
    told = [event for event in read_events(folder.path / "events.jsonl") if event["event"] == "slow"]
    assert [(each["step"], each["seconds"], each["worked_s"]) for each in told] == [
        ("writing a segment", 11.0, 1.1)
    ]
    assert told[0]["reason"] == "writing a segment took 11 s, 10 s of them waited."


def test_a_run_of_slow_steps_is_told_now_and_then(clock: Clock) -> None:
    told: list[SimpleNamespace] = []
    steps = SlowSteps(lambda kind, **facts: told.append(SimpleNamespace(kind=kind, **facts)))
    for _ in range(1000):
        with steps.doing("judging hits"):
            clock.pass_by(3.0)
    assert 10 <= len(told) <= 60
    assert sum(each.times for each in told) > 900


def test_what_other_threads_do_for_a_step_is_its_work(clock: Clock) -> None:
    """Numba may do all of it in threads of its own, while the one that has asked for it waits."""
    told: list[SimpleNamespace] = []
    steps = SlowSteps(lambda kind, **facts: told.append(SimpleNamespace(kind=kind, **facts)))
    with steps.doing("looking for hits"):
        clock.pass_by(4.0, share_of_work=1.9)
    assert told[0].worked_s == 4.0
    assert told[0].reason == "looking for hits took 4 s."


def test_a_slow_step_that_is_told_later_is_told_with_the_time_when_it_ended(clock: Clock) -> None:
    told: list[SimpleNamespace] = []
    steps = SlowSteps(lambda kind, **facts: told.append(SimpleNamespace(kind=kind, **facts)))
    ended_s = []
    for seconds in (3.0, 7.0, 3.0):
        with steps.doing("judging hits"):
            clock.pass_by(seconds)
        ended_s.append(clock.now_s)
    clock.pass_by(100.0)
    with steps.doing("receiving events"):
        clock.pass_by(0.1)
    assert [(each.seconds, each.ended_s) for each in told] == [(3.0, ended_s[0]), (7.0, ended_s[1])]
