"""CPU twin of the kernel of ``base.sum_log_factorials``.

    out[d] = sum over scored p of ln K[d, p]! - sum_{i<K} ln(1 + i e[p])

Most pixels hold no photon or one, which add nothing; a few photons take one logarithm of a product.
"""

import math

import numpy as np
from numba import njit, prange

_FEW_PHOTONS = 32


@njit(nogil=True, error_model="numpy")
def log_rising(K, e):  # type: ignore[no-untyped-def]
    """sum_{i<K} ln(1 + i e); by a series if 1 / e is so large that the log-gammas would cancel."""
    if K * e < 1e-3:
        pairs = K * (K - 1.0) / 2.0
        return e * pairs * (1.0 - e * (2.0 * K - 1.0) / 6.0 + e * e * pairs / 3.0)
    if K <= _FEW_PHOTONS and math.floor(K) == K:
        product = 1.0
        for i in range(1, int(K)):
            product *= 1.0 + i * e
        return math.log(product)
    r = 1.0 / e
    return math.lgamma(K + r) - math.lgamma(r) - K * math.log(r)


@njit(nogil=True, error_model="numpy")
def _term(K, e):  # type: ignore[no-untyped-def]
    if K <= 0.0 or K == 1.0:
        return 0.0
    if K <= _FEW_PHOTONS and math.floor(K) == K:
        product = 1.0
        for i in range(1, int(K)):
            product *= (i + 1.0) / (1.0 + i * e)
        return math.log(product)
    return math.lgamma(K + 1.0) - log_rising(K, e)


@njit(nogil=True, parallel=True, cache=True)
def sum_dense(counts, dispersion, out):  # type: ignore[no-untyped-def]
    """counts (D, P), dispersion (S,) float64, out (D,) float64."""
    for d in prange(len(counts)):
        total = 0.0
        for p in range(len(dispersion)):
            total += _term(np.float64(counts[d, p]), dispersion[p])
        out[d] = total


@njit(nogil=True, parallel=True, cache=True)
def sum_lists(start, pixel, count, dispersion, out):  # type: ignore[no-untyped-def]
    """Entries start[d] .. start[d + 1] of (pixel, count) are those of frame d."""
    for d in prange(len(out)):
        total = 0.0
        for entry in range(start[d], start[d + 1]):
            if pixel[entry] < len(dispersion):
                total += _term(np.float64(count[entry]), dispersion[pixel[entry]])
        out[d] = total
