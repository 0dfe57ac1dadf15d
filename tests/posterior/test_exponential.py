"""The vectorised exponential against float64."""

import numpy as np
from numba import njit

from orienteer.posterior._exponential_numba import FAST, exponential


@njit(fastmath=FAST)
def exponentials(x, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = exponential(x[i])


def values_of(x: list[float] | np.ndarray) -> np.ndarray:
    x = np.asarray(x, np.float32)
    out = np.empty_like(x)
    exponentials(x, out)
    return out


def test_the_exponential_is_right_to_half_a_millionth_over_its_range() -> None:
    x = np.concatenate([np.linspace(-86.99, 88, 200_001), -np.logspace(-30, 1, 1001)]).astype(np.float32)
    np.testing.assert_allclose(values_of(x), np.exp(x.astype(np.float64)), rtol=5e-7)


def test_what_is_too_small_or_not_a_number_is_nothing() -> None:
    np.testing.assert_array_equal(values_of([0.0, -87.5, -1e30, -np.inf, np.nan]), [1, 0, 0, 0, 0])
