"""Sums of parts have the same bits in any order."""

import numpy as np
import pytest

from orienteer.compute.exact_sums import in_parts


@pytest.mark.parametrize("largest", [1.0, 700.0, 3e-9, 5e11])
def test_sums_have_the_same_bits_in_any_order(largest) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=4000)
    values *= largest / np.abs(values).sum()
    parts = in_parts(values, largest)
    total = np.cumsum(parts)[-1]
    for _ in range(10):
        assert np.cumsum(rng.permutation(parts))[-1] == total
    plain = {float(np.cumsum(rng.permutation(values))[-1]) for _ in range(10)}
    assert len(plain) > 1


def test_what_is_rounded_away_is_small() -> None:
    values = np.linspace(0, 100, 333, dtype=np.float32)
    found = in_parts(values, 2e4)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, values, atol=2e4 * 2.0**-52)


def test_what_is_no_number_stays_so() -> None:
    np.testing.assert_array_equal(in_parts(np.array([np.nan, -np.inf, 0.0]), 1.0), [np.nan, -np.inf, 0.0])
