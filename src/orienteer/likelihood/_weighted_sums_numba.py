"""CPU twin of the weighted sums: float64 totals of float32 tables, the same bits on any number of threads."""

import numpy as np
from numba import njit, prange

_FAST = {"contract", "reassoc", "nsz"}
_FRAMES_PER_PART = 512


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def sum_over_frames(table, per_frame, out):  # type: ignore[no-untyped-def]
    """out[k] = sum_d table[k, d] * per_frame[d]."""
    T, D = table.shape
    for k in prange(T):
        total = 0.0
        for d in range(D):
            total += np.float64(table[k, d]) * per_frame[d]
        out[k] = total


@njit(nogil=True, parallel=True, cache=True, fastmath=_FAST)
def sum_over_rows(table, per_row, out):  # type: ignore[no-untyped-def]
    """out[d] = sum_k table[k, d] * per_row[k]."""
    T, D = table.shape
    for part in prange((D + _FRAMES_PER_PART - 1) // _FRAMES_PER_PART):
        first, last = part * _FRAMES_PER_PART, min(D, (part + 1) * _FRAMES_PER_PART)
        for d in range(first, last):
            out[d] = 0.0
        for k in range(T):
            value = per_row[k]
            for d in range(first, last):
                out[d] += np.float64(table[k, d]) * value
