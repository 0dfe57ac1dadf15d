"""Orienteer's own stream: asked for by position, so that nothing is lost or comes twice."""

import gc
import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.source.in_memory import InMemorySource
from orienteer.source.opening import open as open_source
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.stream.pull import PullSource
from orienteer.stream.sockets import open_socket


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("small_data_first", [False, True])
def test_every_event_comes_once_and_as_it_was(serve, made_up, all_of, sparse, small_data_first) -> None:
    sent = made_up(sparse=sparse)
    source = PullSource(serve(sent).address, most_events=7, small_data_first=small_data_first)
    got = all_of(source)
    source.close()
    assert np.array_equal(got.event_id, sent.event_id)
    assert np.array_equal(got.dense(), sent.dense())
    assert got.is_sparse == sparse
    for name, column in sent.columns.items():
        assert np.array_equal(got.columns[name], column)
    assert source.counters.received == 100
    assert source.counters.malformed == 0


@pytest.mark.parametrize("small_data_first", [False, True])
def test_only_the_chosen_frames_are_read(serve, made_up, small_data_first) -> None:
    sent = made_up()
    source = PullSource(serve(sent).address, most_events=50, small_data_first=small_data_first)
    events = source.next(60.0)
    chosen = np.array([41, 3, 3])
    assert np.array_equal(events.patterns(chosen).frames, sent.frames[chosen])
    kept = events.take(events.columns["pulse_energy_J"] > 0.5)
    assert np.array_equal(kept.patterns().frames, sent.frames[:50][sent.columns["pulse_energy_J"][:50] > 0.5])
    assert len(kept.patterns(slice(0, 0))) == 0
    source.close()


def test_a_position_survives_json_and_both_processes(serve, made_up, all_of) -> None:
    sent = made_up()
    first = serve(sent)
    source = PullSource(first.address, most_events=30)
    position = json.loads(json.dumps(source.next(60.0).position))
    source.close()
    first.stop()
    again = PullSource(serve(sent).address, most_events=30)
    again.seek(position)
    assert np.array_equal(all_of(again).event_id, sent.event_id[30:])
    again.close()


def test_a_server_that_is_killed_and_comes_back_loses_nothing(serve, made_up) -> None:
    sent = made_up(n_frames=400)
    serving = serve(sent)
    address = serving.address
    source = PullSource(address, most_events=16, patience_s=0.1)
    got, n_kills = [], 0
    while not source.is_finished:
        events = source.next(0.5)
        if events is not None:
            got.append(events.event_id)
        if len(got) > 5 * (n_kills + 1) and n_kills < 4:
            serving.stop()
            serving, n_kills = serve(sent, address), n_kills + 1
    source.close()
    assert n_kills == 4
    assert np.array_equal(np.concatenate(got), sent.event_id)


def test_what_has_come_is_known_in_a_memory_that_does_not_grow(serve, made_up) -> None:
    sent = made_up(n_frames=100).with_event_ids(np.arange(100, dtype=np.uint64))
    serving = serve(sent, loop=True)
    source = PullSource(serving.address, most_events=100)

    def memory_after(n_events: int) -> int:
        while source.counters.received < n_events:
            source.next(60.0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        grown = -memory_after(4_000) + memory_after(24_000)
    finally:
        tracemalloc.stop()
        source.close()
    assert source.counters.duplicates == 0
    assert grown < 100_000  # 20 000 ids by themselves take 160 000 bytes


def test_questions_do_not_pile_up_while_the_server_is_away(serve, made_up) -> None:
    sent = made_up(n_frames=400)
    serving = serve(sent)
    source = PullSource(serving.address, most_events=40, patience_s=0.001)
    got = [source.next(60.0).event_id]
    serving.stop()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:  # asks some hundred times
        if (events := source.next(0.1)) is not None:
            got.append(events.event_id)
    source.patience_s = 5.0
    again = serve(sent, serving.address)
    while not source.is_finished:
        if (events := source.next(1.0)) is not None:
            got.append(events.event_id)
    source.close()
    assert np.array_equal(np.concatenate(got), sent.event_id)
    assert again.server.n_sent < 400 + 20 * 40


def test_two_that_ask_get_the_same_events(serve, made_up, all_of) -> None:
    sent = made_up()
    address = serve(sent).address
    one, other = PullSource(address, most_events=9), PullSource(address, most_events=40)
    assert np.array_equal(all_of(one).frames, all_of(other).frames)
    one.close()
    other.close()


def test_the_detector_travels_with_the_stream(serve, made_up) -> None:
    detector = square_detector(4, pixel_size_m=1e-4, distance_m=0.5)
    data = InMemorySource(made_up(), (4, 4)).with_detector(detector)
    source = PullSource(serve(data).address)
    assert source.frame_shape == (4, 4)
    assert np.allclose(source.detector.ewald_vectors, detector.ewald_vectors)
    source.close()


def test_events_become_due_at_the_rate_asked_for(serve, made_up) -> None:
    source = PullSource(serve(made_up(n_frames=2000), rate_hz=500.0).address)
    began, n_got = time.monotonic(), 0
    while time.monotonic() - began < 0.6:
        events = source.next(0.1)
        n_got += 0 if events is None else len(events)
    source.close()
    seconds = time.monotonic() - began
    assert 0 < n_got <= 500 * seconds + 1


def test_a_loop_gives_new_ids_on_every_lap(serve, made_up) -> None:
    sent = made_up(n_frames=10)
    source = PullSource(serve(sent, loop=True).address, most_events=4)
    got = [source.next(60.0).patterns() for _ in range(9)]
    source.close()
    ids = np.concatenate([one.event_id for one in got])
    assert len(np.unique(ids)) == len(ids) == 30
    assert np.array_equal(ids[10:20], sent.event_id + np.uint64(28))  # ids 10, 13, ..., 37
    assert np.array_equal(np.concatenate([one.frames for one in got])[20:], sent.frames)


def test_laps_of_time_stamps_have_new_ids(serve) -> None:
    ids = np.array([2**63, 2**63 + 5], np.uint64)
    source = PullSource(serve(Patterns(np.ones((2, 4), np.uint16), ids), loop=True).address)
    got = [one for _ in range(3) for one in source.next(60.0).event_id.tolist()]
    source.close()
    assert got == [2**63 + k for k in (0, 5, 6, 11, 12, 17)]


@pytest.mark.parametrize("small_data_first", [False, True])
def test_events_that_stand_twice_in_a_stream_come_once(serve, all_of, small_data_first: bool) -> None:
    ids = np.array([1, 2, 3, 2, 4], np.uint64)
    serving = serve(Patterns(np.arange(10).reshape(5, 2), ids))
    source = PullSource(serving.address, most_events=2, small_data_first=small_data_first)
    got = all_of(source)
    assert got.event_id.tolist() == [1, 2, 3, 4]
    assert got.frames[:, 0].tolist() == [0, 2, 4, 8]
    assert (source.counters.received, source.counters.duplicates) == (4, 1)
    source.seek({"of": "array", "frame": 2})
    assert all_of(source).event_id.tolist() == [3, 2, 4]
    source.close()


def test_a_replay_is_dense_when_asked_for(serve, made_up, all_of) -> None:
    sent = made_up(sparse=True)
    source = PullSource(serve(sent, dense=True).address)
    got = all_of(source)
    source.close()
    assert not got.is_sparse
    assert got.frames.dtype == np.uint16
    assert np.array_equal(got.frames, sent.dense())


def test_a_growing_file_is_followed(serve, made_up, tmp_path: Path) -> None:
    sent = made_up()
    path = tmp_path / "growing.h5"
    with writer_for(path, live=True, frame_shape=(16,), commit_every_s=0.0) as writer:
        writer.append(sent[:40])
        source = PullSource(serve(open_source(path), follow=True).address)
        assert len(source.next(60.0)) == 40
        assert source.next(0.05) is None
        writer.append(sent[40:])
        got = 0
        until = time.monotonic() + 60
        while got < 60 and time.monotonic() < until:
            events = source.next(1.0)
            got += 0 if events is None else len(events)
    assert got == 60
    assert not source.is_finished
    source.close()


def test_another_file_at_the_same_address_is_refused(serve, made_up, tmp_path: Path) -> None:
    sent = made_up()
    for name in ("one.h5", "other.h5"):
        with writer_for(tmp_path / name, frame_shape=(16,)) as writer:
            writer.append(sent)
    serving = serve(open_source(tmp_path / "one.h5"))
    source = PullSource(serving.address, most_events=10, patience_s=0.1)
    position = source.next(60.0).position
    source.close()
    other = PullSource(serve(open_source(tmp_path / "other.h5")).address)
    other.seek(position)
    with pytest.raises(OrienteerError, match=r"not 'one\.h5'"):
        while not other.is_finished:
            other.next(1.0)
    other.close()


def test_an_address_where_nobody_answers_is_an_error_in_words() -> None:
    with pytest.raises(OrienteerError, match="no stream answered"):
        PullSource("tcp://127.0.0.1:9", connect_s=0.2)
    with pytest.raises(OrienteerError, match="cannot be reached"):
        PullSource("tcp://nowhere", connect_s=0.2)


def test_malformed_requests_are_counted_and_the_server_goes_on(serve, made_up, all_of) -> None:
    serving = serve(made_up())
    hostile = open_socket("DEALER", serving.address, is_server=False)
    rng = np.random.default_rng(2)
    header = {"format": "orienteer-stream", "version": 1, "arrays": []}
    bad = [
        {"kind": "events"},
        {"kind": "events", "from": {"of": "array", "frame": -1}, "most": 3},
        {"kind": "events", "from": {"of": "array", "frame": 10**30}, "most": 3},
        {"kind": "events", "from": {"of": "array", "frame": 0}, "most": "all"},
        {"kind": "frames", "from": {"of": "array", "frame": 0}},
        {"kind": "shell"},
    ]
    messages = [[json.dumps({**header, **one}).encode()] for one in bad]
    messages += [[rng.bytes(int(n))] for n in rng.integers(0, 60, 100)]
    messages += [[rng.bytes(5)] * 300]
    for message in messages:
        hostile.send_multipart(message)
    source = PullSource(serving.address)
    assert len(all_of(source)) == 100
    source.close()
    until = time.monotonic() + 60
    while serving.server.n_malformed < len(messages) and time.monotonic() < until:
        time.sleep(0.01)
    hostile.close()
    assert serving.server.n_malformed == len(messages)


def test_a_description_that_comes_again_is_no_malformed_message(serve, made_up, all_of) -> None:
    """A server that is slow to start answers every question that was repeated meanwhile."""
    sent = made_up()
    source = PullSource(serve(sent).address)
    for _ in range(3):
        source._batches.ask("describe", {})
    got = all_of(source)
    source.close()
    assert np.array_equal(got.event_id, sent.event_id)
    assert source.counters.malformed == 0
