"""Sums on the CPU that are whole numbers: calls and ranks may come in any order."""

from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.slicing.sums import CpuSums

N = 5


def added(parts: list[Any], magnitudes: tuple[float, float] | None) -> CpuSums:
    sums = CpuSums(N, True, magnitudes)
    for part in parts:
        sums.expect_rows(1)
        sums.single += part
    return sums


def some_parts(n: int) -> list[Any]:
    rng = np.random.default_rng(4)
    return [(rng.normal(size=(N, N, N, 2)) * 10 ** rng.uniform(-4, 3)).astype(np.float32) for _ in range(n)]


def total_of(parts: list[Any]) -> tuple[float, float]:
    values, weights = np.sum([np.abs(part).sum(axis=(0, 1, 2), dtype=float) for part in parts], axis=0)
    return float(values), float(weights)


class WithOther:
    """Two ranks, of which the other has these sums."""

    def __init__(self, other: CpuSums) -> None:
        other.finish()
        self.other = other

    def min(self, exponents: Any) -> Any:
        assert self.other.exponents is not None
        return np.minimum(exponents, self.other.exponents)

    def sum(self, x: Any) -> Any:
        return x + (self.other.magnitudes if x.shape == (2,) else self.other.fixed)


def test_the_order_of_calls_changes_no_bit() -> None:
    parts = some_parts(40)
    magnitudes = total_of(parts)
    found = added(parts, magnitudes).finish()
    np.testing.assert_allclose(found, np.sum(parts, axis=0, dtype=float), atol=1e-9)
    np.testing.assert_array_equal(added(parts[::-1], magnitudes).finish(), found)
    # As float64 they are not.
    assert (added(parts[::-1], None).finish() != added(parts, None).finish()).any()


def test_sums_of_two_ranks_have_the_bits_of_one() -> None:
    parts = some_parts(40)
    magnitudes = total_of(parts)
    one, other = added(parts[::3], magnitudes), added(parts[1::3] + parts[2::3], magnitudes)
    joined: Any = one.joined(WithOther(other))  # type: ignore[arg-type]
    np.testing.assert_array_equal(joined.finish(), added(parts, magnitudes).finish())


def test_units_grow_where_more_comes_than_was_foretold() -> None:
    parts = some_parts(6)
    sums = added(parts, (1e-6, 1e-6))
    found = sums.finish()
    assert np.abs(sums.fixed).max() < 2**62
    np.testing.assert_allclose(found, np.sum(parts, axis=0, dtype=float), rtol=1e-6, atol=1e-6)


def test_units_grow_where_all_ranks_together_have_more_than_was_foretold() -> None:
    """Each of eight has as much as whole numbers can hold; all of them have eight times that."""

    class Eight:
        size = 8

        def min(self, x: Any) -> Any:
            return x

        def sum(self, x: Any) -> Any:
            return 8 * x

    part = np.full((N, N, N, 2), 1000, np.float32)
    joined: Any = added([part], (1e-6, 1e-6)).joined(Eight())  # type: ignore[arg-type]
    np.testing.assert_allclose(joined.finish(), 8000, rtol=1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(wrong: float) -> None:
    part = np.zeros((N, N, N, 2), np.float32)
    part[1, 2, 3, 1] = wrong
    with pytest.raises(OrienteerError, match="not finite"):
        added([part], (1.0, 1.0)).finish()
