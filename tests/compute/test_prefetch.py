"""Items that are read ahead come in order, while one is in use, and leave no thread behind."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest

from orienteer.compute.prefetch import Prefetched
from orienteer.errors import FileError

N = 8
PATIENCE = 20.0  # seconds; waited only where one side does not go on without the other


class Slow:
    """Numbers that take a while to read; ``read`` counts them."""

    def __init__(self, seconds: float, fails_at: int = -1) -> None:
        self.seconds, self.fails_at, self.read = seconds, fails_at, 0

    def __iter__(self) -> Iterator[int]:
        for i in range(N):
            if i == self.fails_at:
                raise FileError("frames.h5", "cannot be read.")
            time.sleep(self.seconds)
            self.read += 1
            yield i


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "reading ahead"]


# Each side waits for the other instead of for a clock, so that a busy machine changes nothing.  N items take
# the longer of reading and working because both of these hold.
def test_the_next_item_is_read_while_one_is_in_use() -> None:
    is_read = [threading.Event() for _ in range(N)]

    def items() -> Iterator[int]:
        for i in range(N):
            is_read[i].set()
            yield i

    found = []
    for item in Prefetched(items()):
        assert item == N - 1 or is_read[item + 1].wait(PATIENCE)
        found.append(item)
    assert found == list(range(N))


def test_an_item_is_in_use_while_the_next_is_read() -> None:
    is_used = [threading.Event() for _ in range(N)]

    def items() -> Iterator[int]:
        for i in range(N):
            assert i == 0 or is_used[i - 1].wait(PATIENCE)
            yield i

    found = []
    for item in Prefetched(items()):
        is_used[item].set()
        found.append(item)
    assert found == list(range(N))


def test_an_error_of_the_source_arrives_in_its_place() -> None:
    found = []
    with pytest.raises(FileError, match=r"frames\.h5"):
        for item in Prefetched(Slow(0.0, fails_at=3)):
            found.append(item)
    assert found == [0, 1, 2]
    assert not reading_threads()


@pytest.mark.parametrize("how", ["break", "error"])
def test_leaving_early_stops_the_reader(how: str) -> None:
    source = Slow(0.01)

    def leave() -> None:
        for item in Prefetched(source):
            if item == 1 and how == "break":
                break
            if item == 1:
                raise ValueError

    if how == "break":
        leave()
    else:
        with pytest.raises(ValueError):
            leave()
    assert not reading_threads()
    read = source.read
    assert read <= 4
    time.sleep(0.05)
    assert source.read == read


def test_only_what_may_wait_is_read_ahead_and_nothing_is_kept() -> None:
    made: list[Any] = []

    def arrays() -> Iterator[np.ndarray]:
        for i in range(N):
            array = np.full(3, i)
            made.append(ref(array))
            yield array
            del array

    for i, array in enumerate(Prefetched(arrays(), ahead=2)):
        time.sleep(0.02)
        assert len(made) <= i + 3
        assert array[0] == i
        assert sum(known() is not None for known in made) <= 4  # in use, waiting twice, and being handed over
    assert len(made) == N


def test_a_second_loop_reads_anew() -> None:
    ahead = Prefetched(Slow(0.0))
    assert list(ahead) == list(ahead) == list(range(N))
