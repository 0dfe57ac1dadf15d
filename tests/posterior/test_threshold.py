"""The threshold keeps the promised mass and forgets what it may."""

import math

import numpy as np
import pytest

from orienteer.posterior.threshold import N_BINS, threshold_of_counts


def counts_of(distances: list[float]) -> np.ndarray:
    counts = np.zeros((N_BINS + 1, 1), np.int32)
    for distance in distances:
        counts[min(int(-4 * distance), N_BINS), 0] += 1
    return counts


@pytest.mark.parametrize(
    ("distances", "kept_mass", "lowest", "n_kept"),
    [
        ([0.0], 0.999, -0.25, 1),
        ([0.0] * 5, 0.1, -0.25, 5),  # equals stay together
        ([0.0, -10.0, -10.0], 0.999, -0.25, 1),
        ([0.0, -10.0, -10.0], 1.0, -10.25, 3),
        ([0.0, -2.0, -10.0], 0.999, -2.25, 2),
        ([0.0, -100.0], 1.0, -math.inf, 2),
        ([0.0] + [-40.0] * 1000, 0.999, -0.25, 1),
    ],
)
def test_the_threshold_of_a_few_distances(
    distances: list[float], kept_mass: float, lowest: float, n_kept: int
) -> None:
    total = np.array([np.exp(distances).sum()])
    found = threshold_of_counts(counts_of(distances), total, kept_mass)
    assert (float(found.lowest[0]), int(found.n_kept[0])) == (lowest, n_kept)


def test_a_frame_without_entries_keeps_none() -> None:
    found = threshold_of_counts(np.zeros((N_BINS + 1, 2), np.int32), np.zeros(2), 0.999)
    np.testing.assert_array_equal(found.n_kept, 0)
