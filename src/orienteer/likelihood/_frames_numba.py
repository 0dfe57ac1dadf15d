"""Chosen pixels of dense frames in host memory, in two passes: look at them, then copy or list them.

frames (D, A) of any real type; pixels (P,) places in a frame; forbidden (D, P) uint8, or (0, 0) for none.
"""

import numpy as np
from numba import njit, prange


@njit(nogil=True, inline="always")
def _value(frames, pixels, forbidden, d, p):  # type: ignore[no-untyped-def]
    if len(forbidden) and forbidden[d, p]:
        return frames.dtype.type(0)
    return frames[d, pixels[p]]


@njit(nogil=True, parallel=True, cache=True)
def look(frames, pixels, forbidden, n_scored, lit, lowest, highest, scored, total, squares):  # type: ignore[no-untyped-def]
    """Number of values that are not 0, extremes (NaN if a value is not finite) and sums of each frame."""
    for d in prange(len(frames)):
        n, low, high = 0, 0.0, 0.0
        sum_all = sum_scored = sum_squares = 0.0
        for p in range(len(pixels)):
            value = np.float64(_value(frames, pixels, forbidden, d, p))
            n += value != 0
            low, high = min(low, value), max(high, value)
            sum_all += value
            if p < n_scored:
                sum_scored += value
                sum_squares += value * value
        lit[d], scored[d], total[d], squares[d] = n, sum_scored, sum_all, sum_squares
        # A value that is not finite makes the sum not finite (two infinities of opposite sign give NaN).
        lowest[d], highest[d] = (low, high) if np.isfinite(sum_all) else (np.nan, np.nan)


@njit(nogil=True, parallel=True, cache=True)
def take(frames, pixels, forbidden, out):  # type: ignore[no-untyped-def]
    """out[d, p] = frames[d, pixels[p]]."""
    for d in prange(len(frames)):
        for p in range(len(pixels)):
            out[d, p] = _value(frames, pixels, forbidden, d, p)


@njit(nogil=True, parallel=True, cache=True)
def list_lit(frames, pixels, forbidden, start, place, count):  # type: ignore[no-untyped-def]
    """Places in the pixel list, and counts, of the pixels that are not 0; frame d begins at start[d]."""
    for d in prange(len(frames)):
        e = start[d]
        for p in range(len(pixels)):
            value = _value(frames, pixels, forbidden, d, p)
            if value != 0:
                place[e], count[e] = p, value
                e += 1
