"""Events that have come already are known, in bounded memory."""

import numpy as np
import pytest

from orienteer.stream.seen import SeenIds


@pytest.mark.parametrize("seed", range(4))
def test_ranges_know_the_same_ids_as_a_set(seed: int) -> None:
    random = np.random.default_rng(seed)
    seen, known = SeenIds(), set()
    for _ in range(60):
        ids = random.integers(0, 700, random.integers(0, 25)).astype(np.uint64)
        expected = []
        for one in ids.tolist():
            expected.append(one not in known)
            known.add(one)
        np.testing.assert_array_equal(seen.take(ids), np.array(expected, dtype=bool))
    gaps = np.diff(np.array(sorted(known))) > 1
    assert seen.n_ranges == gaps.sum() + 1


def test_ids_in_a_row_take_one_range_however_many_they_are() -> None:
    seen = SeenIds()
    for first in range(0, 10**6, 10**4):
        assert seen.take(np.arange(first, first + 10**4, dtype=np.uint64)).all()
    assert seen.n_ranges == 1
    assert not seen.take(np.array([0, 999_999], np.uint64)).any()


def test_a_quarter_of_a_million_scattered_ids_are_known() -> None:
    seen, ids = SeenIds(), np.arange(0, 2**19, 2, dtype=np.uint64).reshape(16, -1)
    for batch in ids:
        assert seen.take(batch).all()
    assert not seen.take(ids.ravel()).any()


def test_the_largest_and_the_smallest_id_are_ids_like_others() -> None:
    seen = SeenIds()
    ends = np.array([0, 2**64 - 1], np.uint64)
    assert seen.take(ends).all()
    assert not seen.take(ends).any()
    assert seen.take(np.array([1, 2**64 - 2], np.uint64)).all()
    assert seen.n_ranges == 2


def test_scattered_ids_are_forgotten_only_after_many_others() -> None:
    seen = SeenIds(most_ranges=100)
    ids = np.random.default_rng(0).permutation(10**6).astype(np.uint64) * np.uint64(3)
    for k in range(0, 5000, 50):
        assert seen.take(ids[k : k + 50]).all()
        assert not seen.take(ids[max(0, k - 50) : k + 50]).any()
        assert seen.n_ranges <= 250


def test_a_restored_memory_knows_the_same() -> None:
    seen, other = SeenIds(most_ranges=10), SeenIds(most_ranges=10)
    ids = np.arange(0, 60, 4, dtype=np.uint64)
    seen.take(ids)
    other.restore(seen.state())
    assert not other.take(ids).any()
    assert other.take(ids + np.uint64(1)).all()
