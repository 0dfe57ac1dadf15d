"""Memory in stack order: no byte given out twice, none lost, no hole where frees mirror requests."""

import gc
import timeit
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.compute.arena import Arena, Block, DeviceMemory, device_memory
from orienteer.compute.arrays import import_cupy
from orienteer.errors import DeviceError

UNIT = 512
CAPACITY = 40 * UNIT
# A size in bytes to ask for, or the place of a live block to give back.
ACTIONS = st.lists(
    st.one_of(st.integers(1, 12 * UNIT), st.integers(-50, -1), st.sampled_from([UNIT, 3 * UNIT])),
    max_size=120,
)


def rounded(size: int) -> int:
    return -(-size // UNIT) * UNIT


def gaps(live: list[Block], capacity: int) -> list[int]:
    """Free stretches between live blocks, by brute force."""
    ends = [0]
    for block in sorted(live, key=lambda block: block.first):
        ends += [block.first, block.first + block.size]
    ends.append(capacity)
    return [last - first for first, last in zip(ends[::2], ends[1::2], strict=True)]


@settings(max_examples=300)
@given(ACTIONS, st.sampled_from([1, 2000]))
def test_blocks_never_overlap_and_a_request_fails_only_where_no_gap_is_wide_enough(
    actions: Any, scale: int
) -> None:
    """Small pieces, and large ones for which holes are looked for."""
    capacity = scale * CAPACITY
    arena, live = Arena(capacity), []
    for number in actions:
        action = scale * number if number > 0 else number
        if action < 0:
            if live:
                arena.free(live.pop(action % len(live)))
            continue
        widest = max(gaps(live, capacity))
        try:
            block = arena.allocate(action)
        except DeviceError:
            assert widest < rounded(action)
            continue
        assert widest >= rounded(action)
        assert block.first % UNIT == 0
        assert block.size >= action
        live.append(block)
        assert min(gaps(live, capacity)) >= 0  # negative where two blocks share a byte, or one is outside
        assert arena.free_bytes == sum(gaps(live, capacity))
        assert arena.top == max(block.first + block.size for block in live)
        assert arena.top <= arena.high_water <= capacity
    for block in live:
        arena.free(block)
    assert arena.top == 0
    assert arena.allocate(capacity).first == 0


@given(st.lists(st.integers(1, 9 * UNIT), min_size=1, max_size=30), st.integers(0, 29))
def test_frees_in_reverse_order_leave_no_hole(sizes: list[int], n_kept: int) -> None:
    arena = Arena(1 << 20)
    tops, live = [], []
    for size in sizes:
        tops.append(arena.top)
        live.append(arena.allocate(size))
    most = sum(map(rounded, sizes))
    assert arena.top == arena.high_water == most
    while len(live) > n_kept:
        arena.free(live.pop())
        assert arena.top == tops.pop()
        assert arena.free_bytes == arena.capacity - arena.top
    assert arena.high_water == most


def test_the_top_takes_with_it_what_was_given_back_beneath() -> None:
    arena = Arena(CAPACITY)
    low, middle, high = (arena.allocate(UNIT * n) for n in (1, 2, 3))
    arena.free(middle)
    assert arena.top == 6 * UNIT
    arena.free(high)
    assert arena.top == UNIT
    arena.free(low)
    assert arena.top == 0


def test_a_hole_of_the_same_size_is_used_again_at_once() -> None:
    arena = Arena(CAPACITY)
    holes = [arena.allocate(2 * UNIT) for _ in range(3)]
    arena.allocate(UNIT)
    arena.free(holes[0])
    arena.free(holes[2])
    assert arena.allocate(2 * UNIT).first == holes[2].first
    assert arena.allocate(UNIT + 1).first == holes[0].first
    assert arena.allocate(2 * UNIT).first == 7 * UNIT


def test_a_large_piece_takes_a_hole_that_fits_well_and_leaves_wide_ones() -> None:
    MiB = 2**20
    arena = Arena(1000 * MiB)
    wide, _, well, _ = (arena.allocate(n * MiB) for n in (50, 1, 12, 1))
    arena.free(wide)
    arena.free(well)
    assert arena.allocate(10 * MiB).first == well.first
    assert arena.allocate(2 * MiB).first == well.first + 10 * MiB
    assert arena.allocate(8 * MiB).first == 64 * MiB
    assert arena.allocate(40 * MiB).first == wide.first


def test_the_same_iteration_again_and_again_takes_no_more_memory() -> None:
    """Arrays of an iteration, of batches and of tiles; the model of each iteration outlives it."""
    draw = np.random.default_rng(1)
    arena = Arena(200 * UNIT)
    model = arena.allocate(10 * UNIT)
    marks = []
    for _ in range(50):
        scores = arena.allocate(40 * UNIT)
        for _ in range(20):
            tile = [arena.allocate(int(size)) for size in draw.integers(1, 9 * UNIT, 6)]
            for i in draw.permutation(6):
                arena.free(tile[i])
        new = arena.allocate(10 * UNIT)
        arena.free(scores)
        arena.free(model)
        model = new
        marks.append(arena.high_water)
    assert marks[-1] <= 110 * UNIT
    assert arena.free_bytes == 190 * UNIT


def test_too_much_is_refused_in_one_sentence_with_the_plan() -> None:
    arena = Arena(2**30, planned_GiB=0.75)
    arena.allocate(2**29)
    with pytest.raises(DeviceError, match=r"^0\.6 GiB .* 0\.5 of 1 GiB taken, .* plan .* 0\.75 GiB in all\."):
        arena.allocate(int(0.6 * 2**30))
    assert arena.allocate(2**29).first == 2**29  # and the arena is as it was


def test_a_request_takes_a_few_microseconds() -> None:
    arena = Arena(1 << 30)
    kept = [arena.allocate(UNIT * (1 + i % 7)) for i in range(500)]

    def temporaries() -> None:
        first, second = arena.allocate(7000), arena.allocate(300)
        arena.free(first)
        arena.free(second)

    seconds = min(timeit.repeat(temporaries, number=2000, repeat=5)) / 4000
    assert len(kept) == 500
    assert seconds < 2e-5  # about one microsecond on a quiet machine


def test_on_the_cpu_memory_is_as_ever() -> None:
    memory = device_memory(1 << 60, device="cpu")
    for _ in range(2):
        with memory as block:
            assert block is None


@pytest.mark.gpu
def test_arrays_of_a_run_live_in_its_block_and_others_do_not() -> None:
    cupy: Any = import_cupy()
    memory = DeviceMemory(64 * 2**20)
    first, last = memory._first, memory._first + memory.arena.capacity
    outside = cupy.arange(1000)
    with memory:
        inside = cupy.arange(1000)
        empty = cupy.zeros((0, 3))
        with memory:
            product = (inside[:, None] * inside).sum(axis=0)
    after = cupy.zeros(10)
    for array, is_inside in ((outside, False), (inside, True), (product, True), (after, False)):
        assert (first <= array.data.ptr < last) == is_inside
    assert empty.size == 0
    assert memory.arena.high_water >= 8_000_000
    np.testing.assert_array_equal(product.get(), np.arange(1000) * np.arange(1000).sum())
    del inside, product, array
    gc.collect()
    assert memory.arena.top == 0


@pytest.mark.gpu
def test_an_array_keeps_the_block_alive() -> None:
    """What is free on the card tells nothing of this: others use it as well."""
    cupy: Any = import_cupy()
    memory = DeviceMemory(256 * 2**20)
    held = weakref.ref(memory)
    with memory:
        array = cupy.arange(5)
    del memory
    gc.collect()
    assert held() is not None
    assert array.sum() == 10
    del array
    gc.collect()
    assert held() is None


@pytest.mark.gpu
def test_more_than_the_block_is_refused_and_the_rest_works_on() -> None:
    cupy: Any = import_cupy()
    with DeviceMemory(2**20, planned_GiB=0.5) as memory:
        with pytest.raises(DeviceError, match=r"0\.5 GiB in all"):
            cupy.zeros(2**20)
        assert float(cupy.ones(1000).sum()) == 1000
    assert memory.arena.high_water < 2**20


@pytest.mark.gpu
def test_a_temporary_array_costs_no_more_than_from_the_pool() -> None:
    cupy: Any = import_cupy()

    def temporary() -> None:
        cupy.empty(1000, dtype=np.float32)

    temporary()
    from_pool = min(timeit.repeat(temporary, number=5000, repeat=3)) / 5000
    with DeviceMemory(2**24):
        from_block = min(timeit.repeat(temporary, number=5000, repeat=3)) / 5000
    assert from_block < from_pool + 1e-5
