"""A worker that stalls: the stream waits, not the memory of the worker, and nothing is lost."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.live.journal import read_shots
from orienteer.live.summary import live_summary
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="resident memory is read as Linux tells it"
)
SCRIPT = Path(__file__).parent / "stalled_worker_script.py"
# All of it waits from the beginning on: 256 MiB, of which a batch is two.
N_FRAMES, SIDE, N_BATCH = 8192, 128, 64


def make_shots() -> Patterns:
    """Shots of a few photons; what is zero takes no memory here."""
    frames = np.zeros((N_FRAMES, SIDE * SIDE), dtype=np.uint16)
    frames[np.arange(N_FRAMES), np.arange(N_FRAMES) % 97] = 1
    return Patterns(frames, np.arange(N_FRAMES, dtype=np.uint64))


@contextmanager
def going_on(step: Callable[[], None]) -> Iterator[None]:
    """Do a step again and again beside the block."""
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.is_set():
            step()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def asked_for(shots: Patterns) -> Iterator[str]:
    """A stream that gives what it is asked for; its address."""
    from orienteer.stream.replay import Replay
    from orienteer.stream.server import StreamServer

    server = StreamServer(Replay(InMemorySource(shots, frame_shape=(SIDE, SIDE))), "tcp://127.0.0.1:*")
    try:
        with going_on(lambda: server.serve(0.1)):
            yield server.address
    finally:
        server.close()


@contextmanager
def pushed(shots: Patterns) -> Iterator[str]:
    """A stream that pushes as fast as it is taken; its address."""
    from orienteer.stream.push import Publisher

    publisher = Publisher("tcp://127.0.0.1:*", (SIDE, SIDE))
    batches = iter([*range(0, N_FRAMES, N_BATCH), None])
    waiting = next(batches)

    def step() -> None:
        nonlocal waiting
        is_end = waiting is None
        is_sent = publisher.finish(0.1) if is_end else publisher.send(shots[waiting : waiting + N_BATCH], 0.1)
        waiting = next(batches, None) if is_sent else waiting

    try:
        with going_on(step):
            yield publisher.address
    finally:
        publisher.close()


def receive(kind: str, folder: Path, stall_s: float) -> dict[str, Any]:
    """What a worker tells that has received all shots into a folder."""
    with (asked_for if kind == "ask" else pushed)(make_shots()) as address:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder), address, kind, str(stall_s)],
            capture_output=True,
            text=True,
            timeout=200,
        )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("kind", ["ask", "push"])
def test_what_waits_while_a_worker_stalls_waits_in_the_stream(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("zmq", reason="needs pyzmq: pip install 'orienteer[live]'")
    stalled, usual = (receive(kind, tmp_path / f"{stall_s}", stall_s) for stall_s in (3.0, 0.0))
    assert stalled["has_all"]
    np.testing.assert_array_equal(read_shots(tmp_path / "3.0")["event_id"], np.arange(N_FRAMES))
    assert live_summary(tmp_path / "3.0")["counters"]["processed"] == N_FRAMES
    # Eight messages may wait, of two MiB each, beside the batch that is looked at and its segment.
    assert stalled["most_MiB"] - usual["last_MiB"] < 64
    assert stalled["last_MiB"] - usual["last_MiB"] < 16
