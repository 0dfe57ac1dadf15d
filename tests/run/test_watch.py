"""The leader's watch over ranks, from the other end of its port."""

import json
import queue
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from orienteer.run.fault import Fault
from orienteer.run.watch import Watch

N_RANKS, ONE_MINUTE = 3, 60


class Leader:
    """The first of several ranks, of which the others are played by the test."""

    rank, size, leads, is_alone, host = 0, N_RANKS, True, False, "here"
    members = tuple(("here", number) for number in range(N_RANKS))

    def from_leader(self, value: Any) -> Any:
        self.address = value
        return value

    def name(self, rank: int) -> str:
        return f"rank {rank}"


class Port:
    """The port of a watch, and the faults that it finds."""

    def __init__(self) -> None:
        self.faults: queue.Queue[Fault] = queue.Queue()
        self.leader = Leader()
        self.watch = Watch(self.leader, ONE_MINUTE, "", self.faults.put)  # type: ignore[arg-type]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.leader.address[1]), ONE_MINUTE)

    def message(self, rank: int, **others: Any) -> bytes:
        facts = {"token": self.leader.address[2], "rank": rank, **(others or {"own": (1, "here", False)})}
        return json.dumps(facts).encode() + b"\n"


@pytest.fixture
def port() -> Iterator[Port]:
    port = Port()
    with port.watch:
        yield port


def is_closed(line: socket.socket) -> bool:
    try:
        return line.recv(10) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "said",
    [
        b"1\n",
        b"[]\n",
        b'"word"\n',
        b"GET / HTTP/1.1\n",
        b'{"bye": true}\n',
        b'{"token": "\\u00e9", "rank": 1, "own": [1, "", false]}\n',
        b"[" * 3000 + b"\n",
        b"x" * 100_000,
    ],
)
def test_strangers_are_shown_the_door_and_ranks_are_watched_on(port: Port, said: bytes) -> None:
    with port.connect() as stranger:
        stranger.settimeout(ONE_MINUTE)
        try:
            stranger.sendall(said)
        except OSError:  # the door was closed before the end of the sentence
            pass
        else:
            assert is_closed(stranger)
    rank = port.connect()
    rank.sendall(port.message(1))
    assert rank.recv(1) == b"."
    rank.close()
    assert port.faults.get(timeout=ONE_MINUTE).message == "rank 1 has died."


@pytest.mark.parametrize("number", [0, -1, N_RANKS, 10**400])
def test_a_rank_that_there_is_not_is_a_stranger(port: Port, number: int) -> None:
    with port.connect() as stranger:
        stranger.sendall(port.message(number))
        assert is_closed(stranger)
    assert port.faults.empty()


def test_a_rank_that_says_farewell_has_not_died(port: Port) -> None:
    with port.connect() as rank:
        rank.sendall(port.message(1) + port.message(1, bye=True))
        assert rank.recv(1) == b"."
    with port.connect() as another:
        another.sendall(port.message(2))
        assert another.recv(1) == b"."
    assert port.faults.get(timeout=ONE_MINUTE).message == "rank 2 has died."
    assert port.faults.empty()
