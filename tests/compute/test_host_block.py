"""Arrays that come to the device in turn are the arrays that wait in host memory."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orienteer.compute.arrays import import_cupy, to_numpy
from orienteer.compute.host_block import HostBlock, copied_ahead

KINDS = st.sampled_from([np.uint8, np.uint16, np.int32, np.int64, np.float32, np.float64])
SHAPES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 70)), max_size=5)


def make(shapes: Any, kinds: Any, seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.integers(0, 200, s).astype(k) for s, k in zip(shapes, kinds, strict=False)]


@given(SHAPES, st.lists(KINDS, min_size=5, max_size=5), st.integers(0, 99))
def test_a_block_holds_its_arrays_bit_for_bit(shapes: Any, kinds: Any, seed: int) -> None:
    arrays = make(shapes, kinds, seed)
    block = HostBlock(arrays, "cpu")
    assert block.nbytes >= sum(array.nbytes for array in arrays)
    elsewhere = np.zeros(block.nbytes + 7, dtype=np.uint8)
    elsewhere[: block.nbytes] = block.memory
    for found, array in zip(block.arrays(elsewhere), arrays, strict=True):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
        assert not found.size or (found.ctypes.data - elsewhere.ctypes.data) % 512 == 0


@given(st.lists(SHAPES, max_size=6), st.lists(KINDS, min_size=5, max_size=5))
def test_every_turn_has_its_own_arrays_through_two_buffers(turns: Any, kinds: Any) -> None:
    arrays = [make(shapes, kinds, turn) for turn, shapes in enumerate(turns)]
    blocks = [HostBlock(own, "cpu") for own in arrays]
    buffers = set()
    n_turns = 0
    for copied, own in zip(copied_ahead(blocks, "cpu"), arrays, strict=True):
        n_turns += 1
        for a, b in zip(copied, own, strict=True):
            np.testing.assert_array_equal(a, b)
            buffers |= {id(a.base.base if a.base.base is not None else a.base)} if a.size else set()
            a[...] = 0  # what the caller does to its copy harms nobody
    assert n_turns == len(turns)
    assert len(buffers) <= 2
    for block, own in zip(blocks, arrays, strict=True):
        for a, b in zip(block.arrays(block.memory), own, strict=True):
            np.testing.assert_array_equal(a, b)


def test_arrays_stay_until_the_next_turn_begins() -> None:
    blocks = [HostBlock([np.full(1000, turn)], "cpu") for turn in range(5)]
    for turn, (array,) in enumerate(copied_ahead(blocks, "cpu")):
        assert (array == turn).all()


@pytest.mark.gpu
@pytest.mark.parametrize("leaves_early", [False, True])
def test_kernels_see_the_right_turn_while_the_next_is_copied(leaves_early: bool) -> None:
    cupy: Any = import_cupy()
    draw = np.random.default_rng(0)
    arrays = [draw.integers(0, 255, (4000, 5000)).astype(np.uint8) for _ in range(6)]
    blocks = [HostBlock([array, array[0].astype(np.float64)], "cuda") for array in arrays]
    sums = []
    for turn, (frames, row) in enumerate(copied_ahead(blocks, "cuda")):
        for _ in range(20):  # work that the host does not wait for
            last = frames.sum(dtype=np.int64) + row.sum()
        sums.append(last)
        if leaves_early and turn == 2:
            break
    again = cupy.zeros((4000, 5000), dtype=np.uint8)  # takes the memory of a buffer
    cupy.cuda.Device().synchronize()
    assert not to_numpy(again).any()
    expected = [float(array.sum(dtype=np.int64) + array[0].sum(dtype=np.int64)) for array in arrays]
    assert [float(s) for s in sums] == expected[: len(sums)]


@pytest.mark.gpu
def test_copies_are_hidden_behind_work() -> None:
    """Reading and working at once take little more than the longer of the two, not their sum."""
    cupy: Any = import_cupy()
    blocks = [HostBlock([np.zeros(1 << 28, dtype=np.uint8)], "cuda") for _ in range(6)]
    matrix = cupy.random.random((6000, 6000), dtype=np.float32)

    def seconds(copies: bool, works: bool) -> float:
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(2):
            begin.record()
            for _ in copied_ahead(blocks, "cuda") if copies else range(6):
                for _ in range(2 if works else 0):
                    matrix @ matrix
            end.record()
            end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    copying, working, both = seconds(True, False), seconds(False, True), seconds(True, True)
    assert both < max(copying, working) + 0.5 * min(copying, working)
