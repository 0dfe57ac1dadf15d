"""Streams that push: what was missed is counted, what comes twice is left out."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.opening import open_stream
from orienteer.stream.push import Publisher, PushSource


def numbered(first: int, n: int = 4) -> Patterns:
    ids = np.arange(first, first + n, dtype=np.uint64)
    return Patterns(np.repeat(ids[:, None], 6, axis=1).astype(np.uint16), ids)


def send(publisher: Publisher, batches: list[Patterns]) -> threading.Thread:
    def run() -> None:
        for patterns in batches:
            assert publisher.send(patterns, 60.0)
        publisher.finish(60.0)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def collect(source: PushSource) -> list[int]:
    got: list[int] = []
    until = time.monotonic() + 120
    while not source.is_finished:
        assert time.monotonic() < until, "the source does not end"
        if (events := source.next(60.0)) is not None:
            assert np.array_equal(events.patterns().frames[:, 0], events.event_id)
            got += events.event_id.tolist()
    return got


def test_everything_that_is_pushed_comes() -> None:
    publisher = Publisher("tcp://127.0.0.1:*", (2, 3))
    sender = send(publisher, [numbered(4 * k) for k in range(50)])
    source = open_stream("push+" + publisher.address)
    assert source.frame_shape == (2, 3)
    assert collect(source) == list(range(200))
    assert source.counters.received == 200
    assert source.counters.gaps == 0
    sender.join()
    source.close()
    publisher.close()


SENDS_AND_ENDS = """
import numpy as np
from orienteer.source.patterns import Patterns
from orienteer.stream.push import Publisher
publisher = Publisher("tcp://127.0.0.1:*", (512, 512))
print(publisher.address, flush=True)
for k in range(8):
    while not publisher.send(Patterns(np.full((8, 512 * 512), k, np.uint16), np.arange(8 * k, 8 * k + 8))):
        pass
while not publisher.finish():
    pass
publisher.close(linger_s=60.0)
"""


def test_what_was_sent_arrives_although_the_process_ends_at_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", SENDS_AND_ENDS], stdout=subprocess.PIPE, text=True)
    try:
        source = PushSource(process.stdout.readline().strip(), connect_s=60.0)
        ids: list[int] = []
        until = time.monotonic() + 60
        while not source.is_finished and time.monotonic() < until:
            time.sleep(0.05)  # slower than the sender
            if (events := source.next(1.0)) is not None:
                ids += events.event_id.tolist()
        source.close()
    finally:
        process.kill()
        process.communicate()
    assert source.is_finished
    assert ids == list(range(64))


def test_events_that_come_twice_are_counted_and_left_out() -> None:
    publisher = Publisher("tcp://127.0.0.1:*", (2, 3))
    sender = send(publisher, [numbered(0), numbered(2), numbered(0)])
    source = PushSource(publisher.address)
    assert collect(source) == [0, 1, 2, 3, 4, 5]
    assert source.counters.duplicates == 6
    assert source.counters.received == 6
    sender.join()
    source.close()
    publisher.close()


def test_a_batch_that_is_lost_on_the_way_is_a_gap() -> None:
    publisher = Publisher("tcp://127.0.0.1:*", (2, 3))

    def lose_some() -> None:
        publisher.send(numbered(0), 60.0)
        publisher.n_sent += 8  # announced, and never sent
        publisher.send(numbered(12), 60.0)
        publisher.finish(60.0)

    sender = threading.Thread(target=lose_some)
    sender.start()
    source = PushSource(publisher.address)
    assert collect(source) == [0, 1, 2, 3, 12, 13, 14, 15]
    assert source.counters.gaps == 8
    sender.join()
    source.close()
    publisher.close()


def keep_sending(
    publisher: Publisher, stop: threading.Event, between: Patterns | None = None
) -> threading.Thread:
    """Batch after batch; ``between`` is sent once, in the place of the twentieth."""

    def run() -> None:
        first = 0
        while not stop.wait(0.005):
            patterns = between if between is not None and first == 80 else numbered(first)
            if publisher.send(patterns):
                first += 4

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_what_was_pushed_while_nobody_listened_is_a_gap_after_a_restart() -> None:
    publisher, stop = Publisher("tcp://127.0.0.1:*", (2, 3)), threading.Event()
    sender = keep_sending(publisher, stop)
    source = PushSource(publisher.address)
    seen = source.next(60.0)
    source.close()
    again = PushSource(publisher.address)
    again.seek(seen.position)
    ids = np.concatenate([again.next(60.0).event_id for _ in range(3)])
    stop.set()
    sender.join()
    assert again.counters.gaps == int(ids[0]) - int(seen.event_id[-1]) - 1
    again.close()
    publisher.close()


def test_silence_is_an_error_in_words() -> None:
    publisher = Publisher("tcp://127.0.0.1:*", (2, 3))
    with pytest.raises(OrienteerError, match="nothing was pushed"):
        PushSource(publisher.address, connect_s=0.1)
    publisher.close()


def test_a_publisher_reaches_all_who_listen() -> None:
    publisher = Publisher("tcp://127.0.0.1:*", (2, 3), to_all=True)
    stop = threading.Event()
    sender = keep_sending(publisher, stop)
    sources = [open_stream("pub+" + publisher.address) for _ in range(2)]
    for source in sources:
        ids = np.concatenate([source.next(60.0).event_id for _ in range(5)])
        assert np.array_equal(np.diff(ids), np.ones(19))
        assert source.counters.gaps == 0
    stop.set()
    sender.join()
    for source in sources:
        source.close()
    publisher.close()


def test_a_message_larger_than_allowed_is_never_taken_into_memory() -> None:
    publisher, stop = Publisher("tcp://127.0.0.1:*", (2, 3)), threading.Event()
    large = Patterns(np.zeros((20_000, 6), np.uint16), np.arange(10**6, 10**6 + 20_000))
    sender = keep_sending(publisher, stop, large)
    source = PushSource(publisher.address, most_bytes=1 << 16)
    until = time.monotonic() + 60
    seen: list[int] = []
    while source.counters.gaps < 20_000 and time.monotonic() < until:
        if (events := source.next(60.0)) is not None:
            seen += events.event_id.tolist()
    stop.set()
    sender.join()
    assert source.counters.gaps >= 20_000
    assert 80 < max(seen) < 10**6
    source.close()
    publisher.close()
