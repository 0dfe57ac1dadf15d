"""The sum that any wire between ranks makes, here between threads."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from orienteer.compute.ranks.comm import SERIAL, Serial
from orienteer.compute.ranks.nccl import CardWire, why_not
from orienteer.compute.ranks.ordered_sum import ordered_sum


class Board:
    """Where ranks in threads put down what the others take."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier = size, threading.Barrier(size)
        self.put: list[Any] = [None] * size


class ThreadWire:
    def __init__(self, board: Board, number: int) -> None:
        self.board, self.number, self.size = board, number, board.size

    def _all(self, given: NDArray[Any]) -> list[NDArray[Any]]:
        self.board.put[self.number] = given
        self.board.barrier.wait()
        found = list(self.board.put)
        self.board.barrier.wait()
        return found

    def swap(self, parts: NDArray[Any]) -> NDArray[Any]:
        return np.stack([each[self.number] for each in self._all(parts)])

    def collect(self, part: NDArray[Any]) -> NDArray[Any]:
        return np.stack(self._all(part))


@settings(deadline=None)  # threads of a busy machine wait for each other
@given(st.integers(1, 4), st.lists(st.integers(0, 5), max_size=3), st.sampled_from(["f4", "f8", "i8"]))
def test_every_rank_has_the_same_sum_in_the_order_of_ranks(n: int, shape: list[int], dtype: str) -> None:
    random = np.random.default_rng(n)
    given_by = [np.asarray(random.normal(size=shape) * 1e3).astype(dtype) for _ in range(n)]
    expected = given_by[0].copy()
    for other in given_by[1:]:
        expected = expected + other
    board, found = Board(n), [None] * n

    def rank(number: int) -> None:
        found[number] = ordered_sum(ThreadWire(board, number), given_by[number])

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found:
        np.testing.assert_array_equal(each, expected)
        assert each is not None
        assert each.shape == expected.shape


class Cards(Serial):
    """One of several ranks, which have these cards."""

    def __init__(self, *cards: str | None) -> None:
        super().__init__()
        self._cards = cards

    def gather(self, value: Any) -> list[Any]:
        return list(self._cards)


def test_without_nccl_there_is_no_wire_between_cards() -> None:
    assert CardWire.between(SERIAL, None) is None
    assert "no NCCL" in why_not(Cards("node7 0", None), object(), "node7 0")


def test_ranks_that_share_a_card_add_in_host_memory_and_say_so() -> None:
    """NCCL refuses them, whatever the launcher calls their cards."""
    shared = Cards("node7 0000:1b:00.0", "node7 0000:1b:00.0")
    assert CardWire.between(shared, object(), "node7 0000:1b:00.0") is None
    assert "share a GPU" in why_not(shared, object(), "node7 0000:1b:00.0")
    assert not why_not(Cards("node7 0000:1b:00.0", "node8 0000:1b:00.0"), object(), "node7 0000:1b:00.0")


@pytest.mark.gpu
def test_nccl_adds_what_is_on_a_card() -> None:
    """One card is all that most machines have: it sends to itself."""
    import cupy

    from orienteer.compute.ranks.nccl import nccl_of_cupy

    nccl = nccl_of_cupy()
    if nccl is None:
        pytest.skip("CuPy has no NCCL here")
    wire = CardWire.between(SERIAL, nccl)
    assert wire is not None
    x = cupy.arange(1001, dtype=cupy.float32).reshape(7, 143)
    np.testing.assert_array_equal(ordered_sum(wire, x).get(), x.get())
    wire.close()
