"""CPU twin of ``frame_fit.log_probability``: a short series for most pixels, logarithms for the others."""

import math

import numpy as np
from numba import njit, prange

from orienteer.likelihood._log_factorials_numba import log_rising

# Up to this y, ten terms of the series of ln(1 + y) / y are right to 1e-11.
_SMALL = 0.1


@njit(nogil=True, inline="always")
def _ratio_by_series(y):  # type: ignore[no-untyped-def]
    """ln(1 + y) / y for a small y."""
    value = -1 / 10
    for i in range(9, 0, -1):
        value = (1 / i if i % 2 else -1 / i) + y * value
    return value


@njit(nogil=True, parallel=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def log_probability(counts, expected, dispersion, out):  # type: ignore[no-untyped-def]
    """As ``frame_fit.log_probability``; dispersion (1 or D, S) float64, out (D,) float64."""
    D, S = counts.shape
    for d in prange(D):
        K, lam, e = counts[d], expected[d], dispersion[d % len(dispersion)]
        offset = 0.0
        for p in range(S):
            y = e[p] * np.float64(lam[p])
            offset += np.float64(lam[p]) * (_ratio_by_series(y) if y <= _SMALL else 0.0)
        total = -offset
        for p in range(S):
            y = e[p] * np.float64(lam[p])
            if y > _SMALL:
                total -= math.log1p(y) / e[p]
            if K[p] > 0 and lam[p] > 0:
                count = np.float64(K[p])
                total += count * (math.log(np.float64(lam[p])) - math.log1p(y)) + log_rising(count, e[p])
        out[d] = total
