"""Sums over the pixels and over the shots of a batch on the CPU; the twin of ``photon_sums.cu``."""

import numpy as np
from numba import njit


@njit(nogil=True, fastmath={"reassoc", "contract"}, cache=True)
def sum_pixels(frames, used, lit_from, weight, photons, n_lit, weighted):  # type: ignore[no-untyped-def]
    """photons[d] = Σ K, n_lit[d] = #(K >= lit_from), weighted[d] = Σ w K over the used pixels of each frame.

    frames : (D, P) counts;  used : (P,) uint8;  lit_from, weight : (P,) float32
    """
    D, P = frames.shape
    for d in range(D):
        total, lit, sum_w = np.int64(0), np.int64(0), np.float64(0)
        # Single precision for 1024 pixels at a time: the processor then adds eight or more values at once,
        # provided that each operand is one contiguous piece of memory.
        for first in range(0, P, 1024):
            last = min(first + 1024, P)
            k, u, t, w = frames[d, first:last], used[first:last], lit_from[first:last], weight[first:last]
            part = np.float32(0)
            for p in range(last - first):
                value = np.float32(k[p])
                total += np.int64(k[p]) * u[p]
                lit += np.int64(value >= t[p]) * u[p]
                part += value * w[p]
            sum_w += np.float64(part)
        photons[d] = total
        n_lit[d] = lit
        weighted[d] = sum_w


@njit(nogil=True, cache=True)
def sum_pixels_of_signal(frames, used, lit_from, weight, photons, n_lit, weighted):  # type: ignore[no-untyped-def]
    """The same for a float signal, in which NaN adds nothing."""
    D, P = frames.shape
    for d in range(D):
        total = 0.0
        lit = 0
        sum_w = 0.0
        for p in range(P):
            k = frames[d, p]
            if used[p] and k == k:
                total += k
                lit += k >= lit_from[p]
                sum_w += k * weight[p]
        photons[d] = total
        n_lit[d] = lit
        weighted[d] = sum_w


@njit(nogil=True, cache=True)
def sum_listed_pixels(start, pixel, count, used, lit_from, weight, photons, n_lit, weighted):  # type: ignore[no-untyped-def]
    """The same for lists of photons: frame d has the entries start[d]:start[d + 1]."""
    for d in range(len(start) - 1):
        total = 0
        lit = 0
        sum_w = 0.0
        for e in range(start[d], start[d + 1]):
            p, k = pixel[e], count[e]
            total += k * used[p]
            lit += (k >= lit_from[p]) * used[p]
            sum_w += k * weight[p]
        photons[d] = total
        n_lit[d] = lit
        weighted[d] = sum_w


@njit(nogil=True, cache=True)
def sum_frames(frames, factor, sums):  # type: ignore[no-untyped-def]
    """sums[p] += Σ_d factor[d] K over the frames whose factor is not 0; NaN adds nothing."""
    D, P = frames.shape
    for d in range(D):
        f = factor[d]
        if f != 0:
            for p in range(P):
                k = frames[d, p]
                if k == k:
                    sums[p] += f * k


@njit(nogil=True, cache=True)
def sum_listed_frames(start, pixel, count, factor, sums):  # type: ignore[no-untyped-def]
    """The same for lists of photons."""
    for d in range(len(start) - 1):
        f = factor[d]
        if f != 0:
            for e in range(start[d], start[d + 1]):
                sums[pixel[e]] += f * count[e]
