"""Histograms that grow: counts are exact whatever came first, and bins are few."""

from itertools import pairwise

import numpy as np
import pytest

from orienteer.campaign.address import CampaignError
from orienteer.campaign.bins import MOST_BINS, Bins


def counted(values: np.ndarray, bins: Bins) -> list[int]:
    """The slow way: every value is compared with every edge."""
    edges = bins.edges
    return [int(np.sum((values >= a) & (values < b))) for a, b in pairwise(edges)]


def parts(seed: int) -> list[np.ndarray]:
    """Batches of values whose places and widths differ by many orders of magnitude."""
    random = np.random.default_rng(seed)
    return [
        random.normal(10.0 ** random.uniform(-6, 10), 10.0 ** random.uniform(-6, 6), random.integers(1, 60))
        for _ in range(6)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_counts_of_joined_batches_are_those_of_all_values(seed):
    batches = parts(seed)
    joined = Bins.of(batches[0])
    for batch in batches[1:]:
        joined += Bins.of(batch)
    assert joined.counts.tolist() == counted(np.concatenate(batches), joined)
    assert len(joined.counts) <= MOST_BINS
    assert joined.counts[0] > 0
    assert joined.counts[-1] > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_batches_does_not_matter(seed):
    one, two, three = (Bins.of(batch) for batch in parts(seed)[:3])
    there, back = one + two + three, three + (two + one)
    assert (there.exponent, there.first, there.counts.tolist()) == (
        back.exponent,
        back.first,
        back.counts.tolist(),
    )


def test_times_of_an_hour_are_told_apart_although_they_are_large():
    times_s = 1.7e9 + np.arange(0, 3600, 0.5)
    bins = Bins.of(times_s)
    assert len(bins.counts) > MOST_BINS / 2
    assert bins.counts.tolist() == counted(times_s, bins)


def test_whole_numbers_have_bins_of_whole_width():
    bins = Bins.of(np.array([0, 1, 1, 3], np.uint8))
    assert (bins.edges.tolist(), bins.counts.tolist()) == ([0, 1, 2, 3, 4], [1, 2, 0, 1])
    assert Bins.of(np.array([True, False])).counts.tolist() == [1, 1]
    largest = Bins.of(np.array([2**64 - 1], np.uint64))
    assert largest.counts.tolist() == [1]


@pytest.mark.parametrize("value", [0.0, 1e-300, -1e300, 5e-324, 1.7e308])
def test_one_value_however_large_or_small_is_one_bin_that_holds_it(value):
    bins = Bins.of(np.full(3, value))
    assert bins.counts.tolist() == [3]
    assert bins.edges[0] <= value < bins.edges[1]
    both = bins + Bins.of(np.array([-1.0, 1.0]))
    assert both.counts.sum() == 5
    assert len(both.counts) <= MOST_BINS


def test_fewer_bins_hold_the_same_values():
    values = np.random.default_rng(1).normal(300, 20, 1000)
    bins = Bins.of(values).at_most(50)
    assert 25 < len(bins.counts) <= 50
    assert bins.counts.tolist() == counted(values, bins)
    assert len(Bins.of(np.array([-1.0, 1.0])).at_most(1).counts) == 2


def test_what_the_database_keeps_is_given_back_and_damage_is_told():
    bins = Bins.of(np.random.default_rng(2).normal(size=100))
    back = Bins.from_bytes(bins.exponent, bins.first, bins.as_bytes())
    assert back.edges.tolist() == bins.edges.tolist()
    assert back.counts.tolist() == bins.counts.tolist()
    with pytest.raises(CampaignError, match="damaged"):
        Bins.from_bytes(0, 0, b"no counts")
