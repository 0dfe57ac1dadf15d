"""Messages come from outside: whatever they hold, they are understood or counted, and never more."""

import json
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.batch_message import arrays_of, patterns_of, small_data_of
from orienteer.stream.message import Malformed, decode, encode
from orienteer.stream.pull import PullSource
from orienteer.stream.push import Publisher, PushSource
from orienteer.stream.sockets import endpoint, is_ready, open_socket

COLUMNS = {
    "energy": np.linspace(0, 1, 5),
    "is_on": np.array([True, False, True, True, False]),
    "text": np.array(["a", "bb", "ä", "", "long text"]),
    "bytes": np.array([b"x", b"", b"yy", b"z", b"w"]),
    "vector": np.arange(15, dtype=np.int16).reshape(5, 3),
    "phase": np.arange(5) * 1j,
    "big_endian": np.arange(5, dtype=">f4"),
}


def parts_of(patterns: Patterns) -> list[bytes]:
    parts = encode("events", {"from": {}, "position": {}, "is_end": False}, arrays_of(patterns))
    return [bytes(part) for part in parts]


def batch(sparse: bool = False) -> Patterns:
    patterns = Patterns(
        np.random.default_rng(1).poisson(1.0, (5, 12)).astype(np.uint16), np.arange(5), COLUMNS
    )
    return Patterns(patterns.sparse(), patterns.event_id, COLUMNS) if sparse else patterns


def understood(parts: list[bytes]) -> bool:
    """Whether a message makes a batch; any error but Malformed is a defect and comes through."""
    try:
        message = decode(parts)
        small_data_of(message)
        patterns_of(message, 12)
    except Malformed:
        return False
    return True


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_comes_back_as_it_was(sparse: bool) -> None:
    sent = batch(sparse)
    got = patterns_of(decode(parts_of(sent)), 12)
    assert np.array_equal(got.dense(), sent.dense())
    assert np.array_equal(got.event_id, sent.event_id)
    for name, column in COLUMNS.items():
        assert np.array_equal(got.columns[name], column)


def test_an_empty_batch_and_frames_of_all_types_come_back() -> None:
    for dtype in (np.uint8, np.int16, np.uint16, np.int32, np.float32, np.float64):
        for n in (0, 3):
            sent = Patterns(np.ones((n, 12), dtype), np.arange(n))
            got = patterns_of(decode(parts_of(sent)), 12)
            assert got.frames.dtype == dtype
            assert np.array_equal(got.frames, sent.frames)


def test_what_cannot_be_sent_is_refused_by_the_sender() -> None:
    with pytest.raises(OrienteerError, match="cannot be sent"):
        encode("events", {}, {"things": np.array([object()])})


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [5, 13]},
        {"shape": [-5, -12]},
        {"shape": [2**40, 2**40]},
        {"shape": [5.0, 12]},
        {"shape": "5,12"},
        {"shape": [1] * 40},
        {"dtype": "|O"},
        {"dtype": "object"},
        {"dtype": "<V8"},
        {"dtype": "<U99999"},
        {"dtype": "|S0"},
        {"dtype": ["<u2"]},
        {"name": ""},
        {"name": 7},
        {"name": "event_id"},
        {"name": "x" * 1000},
    ],
    ids=str,
)
def test_an_array_that_is_not_what_it_says_makes_a_message_malformed(change: dict) -> None:
    parts = parts_of(batch())
    header = json.loads(parts[0])
    (entry,) = (one for one in header["arrays"] if one["name"] == "frames")
    entry.update(change)
    assert not understood([json.dumps(header).encode(), *parts[1:]])


@pytest.mark.parametrize("values", [[-1, 3], [0, 12], [3, 2], [2, 2]], ids=str)
def test_lists_of_photons_that_name_other_pixels_are_malformed(values: list[int]) -> None:
    arrays = {
        "event_id": np.arange(1, dtype=np.uint64),
        "photons.start": np.array([0, 2]),
        "photons.pixel": np.array(values, np.int32),
        "photons.count": np.ones(2, np.int32),
    }
    assert not understood([bytes(part) for part in encode("events", {}, arrays)])


def test_a_message_that_declares_much_takes_no_memory() -> None:
    parts = parts_of(batch())
    header = json.loads(parts[0])
    for entry in header["arrays"]:
        entry["shape"] = [1 << 40]
    tracemalloc.start()
    assert not understood([json.dumps(header).encode(), *parts[1:]])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=5))
def test_random_bytes_are_never_understood(parts: list[bytes]) -> None:
    assert not understood(parts)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["format", "version", "kind", "arrays", "from"]), values), st.data())
def test_headers_of_any_json_raise_nothing_but_malformed(change: dict, data: st.DataObject) -> None:
    parts = parts_of(batch(data.draw(st.booleans())))
    header = json.loads(parts[0]) | change
    understood([json.dumps(header).encode(), *parts[1:]])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_real_messages_cut_or_changed_raise_nothing_but_malformed(data: st.DataObject) -> None:
    parts = parts_of(batch(data.draw(st.booleans())))
    k = data.draw(st.integers(0, len(parts) - 1))
    part = bytearray(parts[k])
    if data.draw(st.booleans()):
        parts[k] = bytes(part[: data.draw(st.integers(0, max(0, len(part) - 1)))])
    elif part:
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
        parts[k] = bytes(part)
    understood(parts)


def malformed_messages(n: int) -> list[list[bytes]]:
    """Random bytes, real messages cut short, and headers that lie."""
    rng = np.random.default_rng(3)
    real = parts_of(batch())
    header = json.loads(real[0])
    made: list[list[bytes]] = []
    while len(made) < n:
        kind = len(made) % 4
        if kind == 0:
            made.append([rng.bytes(int(k)) for k in rng.integers(0, 200, rng.integers(1, 5))])
        elif kind == 1:
            k = int(rng.integers(1, len(real)))
            made.append([*real[:k], real[k][: int(rng.integers(0, len(real[k])))], *real[k + 1 :]])
        elif kind == 2:
            made.append(real[: int(rng.integers(1, len(real)))])
        else:
            lie = json.loads(json.dumps(header))
            lie["arrays"][0]["shape"] = [int(rng.integers(6, 2**40))]
            made.append([json.dumps(lie).encode(), *real[1:]])
    return made


def test_ten_thousand_malformed_messages_between_real_ones_are_counted_and_skipped() -> None:
    publisher = Publisher("tcp://127.0.0.1:*", (12,))
    bad = malformed_messages(10_000)
    sent = [Patterns(np.full((5, 12), k, np.uint16), np.arange(5) + 5 * k) for k in range(100)]

    def send_all() -> None:
        for k, patterns in enumerate(sent):
            publisher.send(patterns, 30.0)
            for parts in bad[100 * k : 100 * k + 100]:
                publisher._socket.send_multipart(parts)
        publisher.finish(30.0)

    sender = threading.Thread(target=send_all)
    sender.start()
    source = PushSource(publisher.address, connect_s=30.0)
    got = []
    while not source.is_finished:
        if (events := source.next(60.0)) is not None:
            got.append(events.patterns())
    sender.join()
    source.close()
    publisher.close()
    assert source.counters.malformed == 10_000
    assert source.counters.received == 500
    assert source.counters.gaps == source.counters.duplicates == 0
    assert np.array_equal(
        np.concatenate([one.frames for one in got]), np.concatenate([p.frames for p in sent])
    )


def test_a_server_that_mixes_malformed_answers_with_real_ones_loses_nothing() -> None:
    server = open_socket("ROUTER", "tcp://127.0.0.1:*", is_server=True)
    bad = malformed_messages(1000)
    n_bad = 0

    stop = threading.Event()

    def serve() -> None:
        nonlocal n_bad
        while not stop.is_set():
            if not is_ready(server, 0.02):
                continue
            route, header = server.recv_multipart()
            asked = json.loads(header)
            if asked["kind"] == "describe":
                fields = {"frame_shape": [12], "start": {"frame": 0}, "most": 5}
                server.send_multipart([route, *encode("description", fields)])
                continue
            first = asked["from"]["frame"]
            # Half of the answers come behind a message that is none, the others are one.
            server.send_multipart([route, *bad[n_bad % len(bad)]])
            n_bad += 1
            if n_bad % 2:
                continue
            n = 0 if first >= 500 else 5
            fields = {
                "from": asked["from"],
                "position": {"frame": first + n},
                "is_end": n == 0,
                "again_s": 0.01,
            }
            patterns = Patterns(np.zeros((n, 12), np.uint16), np.arange(first, first + n))
            server.send_multipart([route, *encode("events", fields, arrays_of(patterns))])

    thread = threading.Thread(target=serve)
    thread.start()
    source = PullSource(endpoint(server), patience_s=5.0)
    got: list[int] = []
    while not source.is_finished:
        if (events := source.next(1.0)) is not None:
            got += events.event_id.tolist()
    stop.set()
    thread.join()
    source.close()
    server.close()
    assert got == list(range(500))
    assert source.counters.malformed >= 100
