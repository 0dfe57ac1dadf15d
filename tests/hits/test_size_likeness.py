"""Sizes with one peak and with two, and such between and beside them."""

import numpy as np

from orienteer.hits.evidence import Evidence
from orienteer.hits.size_likeness import SizeLikeness


def hits(sizes: np.ndarray) -> Evidence:
    n = len(sizes)
    rows = np.ones((n, 2), np.float32)
    one = np.ones(n, np.float32)
    return Evidence(rows, rows, rows, one, sizes.astype(np.float32), one)


def test_sizes_of_both_peaks_are_near_and_those_between_are_far() -> None:
    draw = np.random.default_rng(1)
    sizes = np.concatenate([draw.normal(180, 6, 900), draw.normal(90, 4, 100)])
    likeness = SizeLikeness.of(hits(sizes))
    at_peaks = likeness.distance(hits(np.array([180.0, 90.0])))
    beside = likeness.distance(hits(np.array([130.0, 60.0, 230.0, 1e4])))
    assert at_peaks.max() < 7
    assert beside.min() > 9
    assert abs(likeness.size_A - 178) < 4


def test_a_normal_peak_gives_the_squared_distance_in_standard_deviations() -> None:
    draw = np.random.default_rng(2)
    likeness = SizeLikeness.of(hits(100 * np.exp(0.05 * draw.standard_normal(20_000))))
    steps = np.array([0.5, 1.0, 2.0])
    found = likeness.distance(hits(100 * np.exp(0.05 * steps)))
    np.testing.assert_allclose(found, steps**2, rtol=0.15, atol=0.1)


def test_hits_of_one_size_are_no_error() -> None:
    likeness = SizeLikeness.of(hits(np.full(50, 120.0)))
    assert likeness.distance(hits(np.array([120.0])))[0] < 0.1
