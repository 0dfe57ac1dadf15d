"""Orienteer's own stream: asked for by position, so that nothing is lost or comes twice."""

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns
from orienteer.stream.pull import PullSource
from orienteer.stream.replay import Replay
from orienteer.stream.server import StreamServer


class Serving:
    """A server in a thread of its own."""

    def __init__(self, server: StreamServer) -> None:
        self.server, self._stop = server, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.server.serve(0.01)
        self.server.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


Serve = Callable[..., Serving]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[Serving] = []

    def start(
        patterns: Patterns,
        address: str = "tcp://127.0.0.1:*",
        shape: tuple[int, ...] | None = None,
        **options: object,
    ) -> Serving:
        source = InMemorySource(patterns, shape or (patterns.n_pixels,))
        started.append(Serving(StreamServer(Replay(source, **options), address)))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for serving in started:
        serving.stop()


def made_up(n_frames: int = 100, n_pixels: int = 16, sparse: bool = False) -> Patterns:
    rng = np.random.default_rng(5)
    frames = rng.poisson(0.5, (n_frames, n_pixels)).astype(np.uint16)
    columns = {
        "pulse_energy_J": rng.random(n_frames),
        "label": np.array([f"shot {k}" for k in range(n_frames)]),
    }
    ids = np.arange(n_frames, dtype=np.uint64) * np.uint64(3) + np.uint64(10)
    patterns = Patterns(frames, ids, columns)
    return Patterns(patterns.sparse(), ids, columns) if sparse else patterns


def all_of(source: PullSource) -> list[Patterns]:
    batches = []
    while not source.is_finished:
        if (events := source.next(5.0)) is not None:
            batches.append(events.patterns())
    return batches


@pytest.mark.parametrize("sparse", [False, True])
def test_every_event_comes_once_and_as_it_was(serve: Serve, sparse: bool) -> None:
    sent = made_up(sparse=sparse)
    source = PullSource(serve(sent).server.address, most_events=7)
    got = all_of(source)
    source.close()
    assert np.array_equal(np.concatenate([one.event_id for one in got]), sent.event_id)
    assert np.array_equal(np.concatenate([one.dense() for one in got]), sent.dense())
    for name, column in sent.columns.items():
        assert np.array_equal(np.concatenate([one.columns[name] for one in got]), column)
    assert source.counters.received == 100
    assert source.counters.malformed == 0
