"""The worker: every event has one fate, once, whenever it is stopped; what it has learned goes on with it."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.live.folder import LiveFolder
from orienteer.live.journal import Journal, JournalSource, Segment, read_shots
from orienteer.live.looking import Looking
from orienteer.live.summary import live_summary
from orienteer.live.worker import Fate, Worker
from orienteer.run.live_settings import LiveSettings
from orienteer.run.settings import Settings
from orienteer.source.patterns import Patterns, concatenate
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events, events_of

N_PIXELS = 12


def make_shots(n: int, first: int = 0) -> Patterns:
    """Shots whose photons tell their number; every fifth is bright in pixel 3, which makes it a hit."""
    event_id = np.arange(first, first + n, dtype=np.uint64)
    frames = np.zeros((n, N_PIXELS), dtype=np.uint16)
    frames[np.arange(n), event_id.astype(int) % N_PIXELS] = 1
    frames[event_id % np.uint64(5) == 0, 3] = 100 + (event_id[event_id % np.uint64(5) == 0] % np.uint64(50))
    return Patterns(frames, event_id, {"energy_J": 0.1 * event_id, "wavelength_A": np.full(n, 2.0)})


class ListedSource:
    """Batches of a list, by position; what a test wants to happen can be put in between."""

    name, frame_shape, n_pixels, detector = "list", (3, 4), N_PIXELS, None

    def __init__(self, shots: Patterns, size: int = 10) -> None:
        self.shots, self.size, self.row = shots, size, 0
        self.counters = StreamCounters()
        self.frames_read: list[int] = []

    @property
    def is_finished(self) -> bool:
        return self.row >= len(self.shots)

    def next(self, timeout_s: float = 1.0) -> Events | None:
        rows = slice(self.row, min(self.row + self.size, len(self.shots)))
        self.row = rows.stop
        some = self.shots[rows]
        events = events_of(some, {"row": rows.stop})

        def read(chosen: Any) -> Patterns:
            self.frames_read += some.event_id[chosen].tolist()
            return some[chosen]

        return Events(events.event_id, events.columns, events.position, read)

    def seek(self, position: Mapping[str, Any]) -> None:
        self.row = int(position["row"])

    def close(self) -> None:
        pass


class BrightPixel:
    """A hit is a shot with more than 50 photons in pixel 3; counts what it has seen, to be carried on."""

    def __init__(self) -> None:
        self.n_seen = 0
        self.background = np.ones(N_PIXELS)
        self.powder = SimpleNamespace(hits=np.zeros(N_PIXELS))

    def look(self, patterns: Patterns) -> dict[str, np.ndarray]:
        self.n_seen += len(patterns)
        frames = patterns.dense()
        self.powder.hits += frames[frames[:, 3] > 50].sum(axis=0)
        return {
            "photons": frames.sum(axis=1).astype(np.int64),
            "hit_score": frames[:, 3].astype(np.float32),
            "is_hit": frames[:, 3] > 50,
        }

    def state(self) -> dict[str, np.ndarray]:
        return {"n_seen": np.array(self.n_seen), "powder": self.powder.hits}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.n_seen = int(state["n_seen"])
        self.powder.hits = np.array(state["powder"])


class BrightnessAnalysis:
    """The size of a hit is its brightness in pixel 3; all are single."""

    def __init__(self) -> None:
        self.n_seen = 0

    def look(self, hits: Patterns, background: np.ndarray | None) -> dict[str, np.ndarray]:
        self.n_seen += len(hits)
        return {
            "size_A": hits.dense()[:, 3].astype(np.float32),
            "kind": np.ones(len(hits), dtype=np.uint8),
        }

    def state(self) -> dict[str, np.ndarray]:
        return {"n_seen": np.array(self.n_seen)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.n_seen = int(state["n_seen"])


@pytest.fixture
def folder(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "run")
    live.make()
    assert live.begin({"sources": {"list": "list"}}, Settings())
    live.meet_source((3, 4), None)
    return live


def make_worker(folder: LiveFolder, source: ListedSource, **options: object) -> Worker:
    looking = Looking(lambda raw: raw, BrightPixel(), lambda wavelength_A: BrightnessAnalysis())
    settings = options.pop("settings", LiveSettings(commit_every_s=0.05))
    return Worker(folder, source, looking, settings, **options)


def check_exactly_once(folder: LiveFolder, n: int) -> dict[str, np.ndarray]:
    shots = read_shots(folder.path)
    np.testing.assert_array_equal(np.sort(shots["event_id"]), np.arange(n))
    counters = live_summary(folder.path)["counters"]
    assert counters["received"] == n
    assert counters["received"] == counters["filtered"] + counters["dropped"] + counters["processed"]
    for fate, name in ((Fate.PROCESSED, "processed"), (Fate.FILTERED, "filtered"), (Fate.DROPPED, "dropped")):
        assert counters[name] == (shots["fate"] == fate).sum()
    hits = JournalSource(folder.path).read()
    np.testing.assert_array_equal(hits.event_id, shots["event_id"][shots["is_hit"]])
    return shots


def test_all_events_arrive_with_what_was_found_in_them(folder: LiveFolder) -> None:
    worker = make_worker(folder, ListedSource(make_shots(203)))
    assert worker.run(lambda: True)
    shots = check_exactly_once(folder, 203)
    np.testing.assert_array_equal(shots["is_hit"], np.arange(203) % 5 == 0)
    np.testing.assert_allclose(shots["energy_J"], 0.1 * np.arange(203))
    hits = JournalSource(folder.path).read()
    np.testing.assert_array_equal(hits.dense(), make_shots(203).frames[::5])
    np.testing.assert_array_equal(hits.columns["size_A"], hits.dense()[:, 3])
    assert np.isnan(shots["size_A"][1])
    assert folder.read_counters()["received"] == 203
    assert folder.read_counters()["is_finished"]


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_that_dies_at_any_batch_loses_and_repeats_nothing(folder: LiveFolder, seed: int) -> None:
    """A worker is left alone in the middle of a segment, as often as twenty times; the next one goes on."""
    random = np.random.default_rng(seed)
    shots = make_shots(400)
    for _ in range(20):
        worker = make_worker(folder, source := ListedSource(shots))
        for _ in range(random.integers(0, 6)):
            if not source.is_finished:
                worker.take(source.next())
            if random.random() < 0.3:
                worker.commit()
    worker = make_worker(folder, ListedSource(shots))
    assert worker.run(lambda: True)
    check_exactly_once(folder, 400)
    assert worker._looking.finder.n_seen == 400
    np.testing.assert_array_equal(live_summary(folder.path)["powder"]["hits"], shots.frames[::5].sum(axis=0))


def test_a_worker_gives_back_what_it_has_freed_with_every_segment(
    folder: LiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    worker = make_worker(folder, ListedSource(make_shots(30)))
    monkeypatch.setattr(
        "orienteer.live.worker.give_back_freed_memory", lambda: given_back.append(worker.n_segments)
    )
    for _ in range(3):
        worker.take(worker._source.next())
        worker.commit()
    assert given_back == [1, 2, 3]


def test_events_that_come_again_are_counted_and_left_out(folder: LiveFolder) -> None:
    shots = make_shots(50)
    twice = concatenate([shots[:30], shots[20:40], shots[35:]])
    make_worker(folder, ListedSource(twice)).run(lambda: True)
    check_exactly_once(folder, 50)
    assert live_summary(folder.path)["counters"]["duplicates"] == 15


def test_duplicates_are_known_across_a_restart_without_positions(folder: LiveFolder) -> None:
    shots = make_shots(60)
    make_worker(folder, ListedSource(shots[:40])).run(lambda: True)
    pushed = ListedSource(shots[25:])
    pushed.seek = lambda position: None
    make_worker(folder, pushed).run(lambda: True)
    check_exactly_once(folder, 60)
    assert live_summary(folder.path)["counters"]["duplicates"] == 15


def test_a_filter_decides_before_frames_are_read(folder: LiveFolder) -> None:
    source = ListedSource(make_shots(100))
    make_worker(folder, source, keep=lambda columns: columns["energy_J"] > 4.95).run(lambda: True)
    shots = check_exactly_once(folder, 100)
    assert source.frames_read == list(range(50, 100))
    assert (shots["fate"] == Fate.FILTERED).sum() == 50
    assert not shots["is_hit"][:50].any()


def test_late_events_are_dropped_only_where_that_is_asked_for(folder: LiveFolder) -> None:
    shots = make_shots(40)
    times = np.where(np.arange(40) < 10, time.time() - 100, time.time())
    shots = Patterns(shots.frames, shots.event_id, {**shots.columns, "time_s": times})
    source = ListedSource(shots[:20])
    make_worker(folder, source, settings=LiveSettings(when_late="drop", late_after_s=50)).run(lambda: True)
    assert source.frames_read == list(range(10, 20))
    make_worker(folder, ListedSource(concatenate([shots[:10], shots[20:]]))).run(lambda: True)
    assert live_summary(folder.path)["counters"]["dropped"] == 10


def test_events_that_the_source_gave_up_are_received_and_dropped(folder: LiveFolder) -> None:
    source = ListedSource(make_shots(10))
    worker = make_worker(folder, source)
    events = source.next()
    worker.take(type(events)(events.event_id, events.columns, events.position, events.read, n_dropped=7))
    worker.commit()
    counters = live_summary(folder.path)["counters"]
    assert (counters["received"], counters["dropped"], counters["processed"]) == (17, 7, 10)


def test_what_the_source_counts_goes_on_over_restarts(folder: LiveFolder) -> None:
    shots = make_shots(30)
    for n in (10, 20, 30):
        source = ListedSource(shots[:n])
        worker = make_worker(folder, source)
        source.counters.malformed += 2
        worker.run(lambda: True)
    assert live_summary(folder.path)["counters"]["malformed"] == 6
    check_exactly_once(folder, 30)


def test_segments_that_take_long_to_write_come_seldom(
    folder: LiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Journal.commit
    begun: list[float] = []

    def slow_commit(journal: Journal, segment: Segment) -> int:
        begun.append(time.monotonic())
        time.sleep(0.05)
        return commit(journal, segment)

    monkeypatch.setattr(Journal, "commit", slow_commit)
    source = ListedSource(make_shots(400), size=2)
    hurried = source.next
    source.next = lambda timeout_s=1.0: time.sleep(0.005) or hurried(timeout_s)
    make_worker(folder, source).run(lambda: True)
    check_exactly_once(folder, 400)
    assert min(np.diff(begun[:-1]), default=1.0) > 0.2  # the last one comes with the end of the stream


def test_the_summary_tells_rates_sizes_and_kinds(folder: LiveFolder) -> None:
    make_worker(folder, ListedSource(make_shots(100))).run(lambda: True)
    told = live_summary(folder.path)
    assert told["hits"] == 20
    assert sum(told["hit_rate"]["shots"]) == 100
    assert sum(told["hit_rate"]["hits"]) == 20
    assert sum(told["size_A"]["counts"]) == 20
    assert told["kinds"] == {"single": 20}
    assert told["recent_hits"] == list(range(0, 100, 5))
    assert told["frame_shape"] == (3, 4)


def test_frames_of_another_shape_do_not_belong_to_a_run(folder: LiveFolder) -> None:
    with pytest.raises(FileError, match="has received 3 x 4"):
        folder.meet_source((5, 5), None)


@pytest.mark.parametrize("n_writes", [0, 1, 2])
def test_a_run_that_was_killed_while_it_was_begun_can_be_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_writes: int
) -> None:
    """Killed before its first file, while it is written, and between it and the second."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    live = LiveFolder(tmp_path / "run")
    live.make()
    (live.path / "lock").touch()
    if n_writes:
        (live.path / ".live.json.123.part").write_text("{")
        with monkeypatch.context() as patched:
            patched.setattr("orienteer.live.folder.write_settings", killed)
            if n_writes == 1:
                patched.setattr("orienteer.live.folder.write_json", killed)
            with pytest.raises(KeyboardInterrupt):
                live.begin({"sources": {"list": "list"}}, Settings())
    live.make()
    assert live.begin({"sources": {"list": "list"}}, Settings()) == (n_writes < 2)
    assert live.read_settings() == Settings()


def test_a_killed_worker_whose_last_counters_are_old_finishes_when_it_goes_on(
    folder: LiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the commit of the last segment and its counters."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LiveFolder, "write_counters", killed)
        with pytest.raises(KeyboardInterrupt):
            make_worker(folder, ListedSource(make_shots(90))).run(lambda: True)
    assert not folder.read_counters()
    assert make_worker(folder, ListedSource(make_shots(90))).run(lambda: True)
    check_exactly_once(folder, 90)
    assert folder.read_counters()["is_finished"]


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(FileError, match="holds other things"):
        LiveFolder(tmp_path).make()
