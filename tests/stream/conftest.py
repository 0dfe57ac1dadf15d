"""What the tests of streams share: made-up frames, and servers that run beside the test."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.source.base import Source
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns, concatenate
from orienteer.stream.base import EventSource
from orienteer.stream.replay import Replay
from orienteer.stream.server import StreamServer

MadeUp = Callable[..., Patterns]
Serve = Callable[..., "Serving"]
AllOf = Callable[[EventSource], Patterns]


class Serving:
    """A server in a thread of its own."""

    def __init__(self, server: StreamServer) -> None:
        self.server, self.address, self._stop = server, server.address, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.server.serve(0.01)
        self.server.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def bound(replay: Replay, address: str) -> StreamServer:
    """A server; the port of one that was just closed becomes free a moment later."""
    until = time.monotonic() + 60
    while True:
        try:
            return StreamServer(replay, address)
        except OrienteerError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves patterns or a source: ``serve(patterns, rate_hz=100)``; ``.address`` is where."""
    started: list[Serving] = []

    def start(data: Patterns | Source, address: str = "tcp://127.0.0.1:*", **options: Any) -> Serving:
        source = InMemorySource(data) if isinstance(data, Patterns) else data
        started.append(Serving(bound(Replay(source, **options), address)))
        return started[-1]

    yield start
    for serving in started:
        serving.stop()


@pytest.fixture
def made_up() -> MadeUp:
    """Counts with ids 10, 13, 16, ... and columns of numbers and text."""

    def make(n_frames: int = 100, n_pixels: int = 16, sparse: bool = False, seed: int = 5) -> Patterns:
        rng = np.random.default_rng(seed)
        frames = rng.poisson(0.5, (n_frames, n_pixels)).astype(np.uint16)
        labels = np.array([f"shot {k}" for k in range(n_frames)])
        columns = {"pulse_energy_J": rng.random(n_frames), "label": labels}
        ids = np.arange(n_frames, dtype=np.uint64) * np.uint64(3) + np.uint64(10)
        patterns = Patterns(frames, ids, columns)
        return Patterns(patterns.sparse(), ids, columns) if sparse else patterns

    return make


@pytest.fixture
def all_of() -> AllOf:
    """Everything that a source gives until it says that it has ended, in one batch."""

    def collect(source: EventSource) -> Patterns:
        batches, until = [], time.monotonic() + 120
        while not source.is_finished:
            assert time.monotonic() < until, "the source does not end"
            if (events := source.next(5.0)) is not None and len(events):
                batches.append(events.patterns())
        return concatenate(batches)

    return collect
