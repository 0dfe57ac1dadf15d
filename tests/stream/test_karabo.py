"""Trains of a Karabo bridge become events, one for each pulse.

The bridge here is a stand-in, made by the public description of the messages, formats 1.0 and 2.2.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.errors import OrienteerError
from orienteer.stream.karabo import KaraboSource
from orienteer.stream.karabo_message import decode_karabo
from orienteer.stream.message import Malformed
from orienteer.stream.opening import open_stream
from orienteer.stream.sockets import endpoint, is_ready, open_socket

msgpack = pytest.importorskip("msgpack")
AGIPD = "SPB_DET_AGIPD1M-1/DET/{}CH0:xtdf"
XGM = "SA1_XTD2_XGM/DOOCS/MAIN"


def metadata(source: str, train: int) -> dict[str, Any]:
    seconds = 1_526_464_869 + train / 10
    return {
        "source": source,
        "timestamp": seconds,
        "timestamp.tid": train,
        "timestamp.sec": str(int(seconds)),
        "timestamp.frac": "410975500000000000",
        "ignored_keys": [],
    }


def message_2(data: dict[str, dict[str, Any]], train: int) -> list[bytes]:
    """Format 2.2: for each source a header and its values, then a header and the bytes of each array."""
    parts: list[bytes] = []
    for source, values in data.items():
        arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
        plain = {key: value for key, value in values.items() if key not in arrays}
        header = {"source": source, "content": "msgpack", "metadata": metadata(source, train)}
        parts += [msgpack.packb(header), msgpack.packb(plain)]
        for key, array in arrays.items():
            header = {
                "source": source,
                "content": "array",
                "path": key,
                "dtype": str(array.dtype),
                "shape": list(array.shape),
            }
            parts += [msgpack.packb(header), array.tobytes()]
    return parts


def message_1(data: dict[str, dict[str, Any]], train: int) -> list[bytes]:
    """Format 1.0: one map; arrays are maps with keys of bytes, as msgpack-numpy writes them."""

    def packed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return {
                b"nd": True,
                b"type": value.dtype.str,
                b"kind": b"",
                b"shape": value.shape,
                b"data": value.tobytes(),
            }
        if isinstance(value, np.generic):
            return {b"nd": False, b"type": value.dtype.str, b"data": value.tobytes()}
        return value

    table = {
        source: {**{key: packed(value) for key, value in values.items()}, "metadata": metadata(source, train)}
        for source, values in data.items()
    }
    return [msgpack.packb(table, use_bin_type=True)]


class Bridge:
    """Answers "next" with the next message, as often as there is one; then it stays silent."""

    def __init__(self, messages: list[list[bytes]]) -> None:
        self.messages = messages
        self._socket = open_socket("REP", "tcp://127.0.0.1:*", is_server=True)
        self.address = endpoint(self._socket)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for message in self.messages:
            while not is_ready(self._socket, 0.02):
                if self._stop.is_set():
                    return
            assert self._socket.recv() == b"next"
            self._socket.send_multipart(message)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()


@pytest.fixture
def bridge() -> Iterator[Callable[[list[list[bytes]]], Bridge]]:
    started: list[Bridge] = []

    def start(messages: list[list[bytes]]) -> Bridge:
        started.append(Bridge(messages))
        return started[-1]

    yield start
    for one in started:
        one.close()


def frames_of(train: int, module: int, pulses: np.ndarray) -> np.ndarray:
    """(pulses, 3, 2): the value says train, module and pulse."""
    values = 1000 * train + 100 * module + pulses.astype(np.int64)
    return np.broadcast_to(values[:, None, None], (len(pulses), 3, 2)).astype(np.uint32).copy()


def module(train: int, number: int, pulses: Any = (0, 4, 8)) -> dict[str, dict[str, Any]]:
    pulse = np.array(pulses, np.uint64)
    return {
        AGIPD.format(number): {
            "image.data": frames_of(train, number, pulse),
            "image.pulseId": pulse,
            "header.pulseCount": len(pulse),
        }
    }


def train_data(train: int, n_modules: int = 3, **options: Any) -> dict[str, dict[str, Any]]:
    # Modules arrive in the order of text, in which 10 comes before 2.
    numbers = sorted(range(0, 5 * n_modules, 5), key=str)
    data = {name: values for number in numbers for name, values in module(train, number, **options).items()}
    return {**data, XGM: {"pulseEnergy.photonFlux": 0.5 * train, "shape": np.arange(20) + 0.5, "name": "XGM"}}


@pytest.mark.parametrize("packed", [message_1, message_2], ids=["1.0", "2.2"])
def test_every_pulse_of_every_train_is_an_event(packed: Callable, bridge: Callable) -> None:
    served = bridge([packed(train_data(train), train) for train in (7, 8, 9)])
    source = open_stream(
        served.address.replace("tcp://", "karabo://"),
        columns={"pulse_energy_J": (XGM, "pulseEnergy.photonFlux"), "height": (XGM, "shape")},
    )
    assert source.frame_shape == (3, 3, 2)
    for train in (7, 8, 9):
        events = source.next(60.0)
        assert events.event_id.tolist() == [train * 2**16 + pulse for pulse in (0, 4, 8)]
        assert events.columns["train_id"].tolist() == [train] * 3
        assert events.columns["pulse_id"].tolist() == [0, 4, 8]
        assert events.columns["pulse_energy_J"].tolist() == [0.5 * train] * 3
        assert events.columns["height"].tolist() == [0.5, 1.5, 2.5]
        assert np.allclose(np.diff(events.columns["time_s"]), 0)
        expected = np.stack([frames_of(train, 5 * m, np.array([0, 4, 8])) for m in range(3)], axis=1)
        assert np.array_equal(events.patterns().frames, expected.reshape(3, 18))
    assert source.next(0.05) is None
    assert source.counters.received == 9
    source.close()


def test_a_camera_has_one_frame_a_train(bridge: Callable) -> None:
    camera = {"SPB/CAM/1:output": {"data.image": np.full((4, 5), 7, np.uint16)}}
    source = KaraboSource(bridge([message_2(camera, 3)]).address, image_key="data.image")
    events = source.next(60.0)
    assert events.event_id.tolist() == [3 * 2**16]
    assert source.frame_shape == (4, 5)
    source.close()


def test_the_axis_of_pulses_may_be_another(bridge: Callable) -> None:
    data = module(5, 0)
    data[AGIPD.format(0)]["image.data"] = np.moveaxis(data[AGIPD.format(0)]["image.data"], 0, -1).copy()
    source = KaraboSource(bridge([message_2(data, 5)]).address, pulse_axis=-1)
    expected = frames_of(5, 0, np.array([0, 4, 8])).reshape(3, 6)
    assert np.array_equal(source.next(60.0).patterns().frames, expected)
    source.close()


def test_pulses_and_trains_that_not_all_modules_have_are_dropped(bridge: Callable) -> None:
    partly = {**module(2, 0), **module(2, 5, (4, 8, 12))}
    served = bridge(
        [
            message_2({**module(1, 0), **module(1, 5)}, 1),
            message_2(partly, 2),
            message_2(module(3, 0), 3),
            message_2({**module(4, 0), **module(4, 5, (1, 2))}, 4),
            message_2({**module(6, 0), **module(6, 5)}, 6),
        ]
    )
    source = KaraboSource(served.address)
    got = [source.next(60.0) for _ in range(5)]
    assert [len(events) for events in got] == [3, 2, 0, 0, 3]
    assert [events.n_dropped for events in got] == [0, 2, 3, 5, 0]
    values = got[1].patterns().frames.reshape(2, 2, 6)[:, :, 0]
    assert values.tolist() == [[2004, 2504], [2008, 2508]]
    assert source.counters.dropped == 10
    assert source.counters.received == 18
    assert source.counters.gaps == 1  # train 5
    source.close()


def test_values_of_pulses_stay_with_their_pulses_when_some_are_dropped(bridge: Callable) -> None:
    partly = {**module(2, 0), **module(2, 5, (4, 8)), XGM: {"list": np.array([0.0, 0.4]), "one": 3}}
    source = KaraboSource(
        bridge([message_2(partly, 2)]).address, columns={"x": (XGM, "list"), "y": (XGM, "one")}
    )
    events = source.next(60.0)
    assert events.columns["pulse_id"].tolist() == [4, 8]
    assert events.columns["x"][0] == 0.4  # the second pulse of the train
    assert np.isnan(events.columns["x"][1])
    assert events.columns["y"].tolist() == [3.0, 3.0]
    source.close()


def test_modules_of_another_train_are_not_taken_for_those_that_are_missing(bridge: Callable) -> None:
    served = bridge(
        [message_2({**module(t, a), **module(t, b)}, t) for t, a, b in ((1, 0, 5), (2, 0, 7), (3, 0, 5))]
    )
    source = KaraboSource(served.address)
    got = [source.next(60.0) for _ in range(3)]
    assert [(len(events), events.n_dropped) for events in got] == [(3, 0), (0, 3), (3, 0)]
    source.close()


def test_a_first_train_that_is_not_whole_is_counted_and_the_shape_waited_for(bridge: Callable) -> None:
    served = bridge([message_2(module(1, 0), 1), message_2({**module(2, 0), **module(2, 5)}, 2)])
    source = KaraboSource(served.address, n_modules=2)
    assert source.frame_shape == (2, 3, 2)
    got = [source.next(60.0) for _ in range(2)]
    assert [(len(events), events.n_dropped) for events in got] == [(0, 3), (3, 0)]
    assert got[0].patterns().frames.shape == (0, 12)
    assert (source.counters.received, source.counters.dropped) == (6, 3)
    source.close()


def test_a_train_that_comes_twice_is_counted_and_left_out(bridge: Callable) -> None:
    once, other = message_2(module(1, 0), 1), message_2(module(2, 0), 2)
    source = KaraboSource(bridge([once, once, other]).address)
    assert [source.next(60.0).position["train"] for _ in range(2)] == [1, 2]
    assert source.counters.duplicates == 3
    source.close()


def test_malformed_messages_are_counted_and_skipped(bridge: Callable) -> None:
    real = message_2(train_data(1), 1)
    pickled = msgpack.packb(
        {
            "a": {
                "image.data": {
                    b"nd": True,
                    b"type": "|O",
                    b"kind": b"O",
                    b"shape": (1,),
                    b"data": b"cos\nsystem",
                }
            }
        }
    )
    bad = [[b""], [b"\xc1" * 9], real[:3], [real[0], b"\x01"], [pickled], [b"\x81" * 50, b""]]
    bad += [[*real[:k], real[k][:-1], *real[k + 1 :]] for k in range(len(real)) if real[k]]
    source = KaraboSource(bridge([*bad, real]).address)
    assert len(source.next(60.0)) == 3
    assert source.counters.malformed == len(bad)
    source.close()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_messages_raise_nothing_but_malformed(data: st.DataObject) -> None:
    parts = data.draw(st.sampled_from([message_1(train_data(1), 1), message_2(train_data(1), 1)]))
    parts = list(parts)
    k = data.draw(st.integers(0, len(parts) - 1))
    part = bytearray(parts[k])
    for _ in range(data.draw(st.integers(1, 4))):
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    parts[k] = bytes(part)
    with contextlib.suppress(Malformed):
        decode_karabo(parts)


def test_two_sources_with_frames_need_a_choice(bridge: Callable) -> None:
    cameras = {name: {"image.data": np.ones((2, 2), np.uint16)} for name in ("CAM/A", "CAM/B")}
    with pytest.raises(OrienteerError, match="image_source"):
        KaraboSource(bridge([message_2(cameras, 1)]).address)
    source = KaraboSource(bridge([message_2(cameras, 1)]).address, image_source="CAM/B")
    assert len(source.next(60.0)) == 1
    source.close()


def test_a_silent_bridge_is_an_error_in_words(bridge: Callable) -> None:
    with pytest.raises(OrienteerError, match="no whole train"):
        KaraboSource(bridge([]).address, connect_s=0.1)
