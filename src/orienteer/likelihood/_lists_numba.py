"""Lists of photons in host memory over a pixel list, frame by frame on all cores."""

import numpy as np
from numba import njit, prange


@njit(nogil=True, parallel=True, cache=True)
def count_kept(start, pixel, place, forbidden, kept):  # type: ignore[no-untyped-def]
    """Lit pixels of each frame that are in the list and that its own mask allows.

    place : (all pixels,) int64, place of each pixel in the list; -1 if it is not in the list.
    forbidden : (D, P) uint8, or (0, 0).
    kept : (D,) int64, written.
    """
    for d in prange(len(kept)):
        n = 0
        for e in range(start[d], start[d + 1]):
            p = place[pixel[e]]
            n += p >= 0 and (forbidden.size == 0 or forbidden[d, p] == 0)
        kept[d] = n


@njit(nogil=True, parallel=True, cache=True)
def put_over(start, pixel, count, place, forbidden, n_scored, new_start, new_pixel, new_count, sums):  # type: ignore[no-untyped-def]
    """Write the entries that ``count_kept`` has counted, ascending within a frame, and their sums.

    sums : (3, D) float64: photons of scored pixels, of all, and squares of the scored ones.
    """
    for d in prange(len(new_start) - 1):
        n, last, ascends = new_start[d], -1, True
        scored, total, squares = 0.0, 0.0, 0.0
        for e in range(start[d], start[d + 1]):
            p = place[pixel[e]]
            if p < 0 or (forbidden.size > 0 and forbidden[d, p] != 0):
                continue
            new_pixel[n] = p
            new_count[n] = count[e]
            n += 1
            ascends = ascends and p > last
            last = p
            photons = float(count[e])
            total += photons
            if p < n_scored:
                scored += photons
                squares += photons * photons
        sums[0, d], sums[1, d], sums[2, d] = scored, total, squares
        if not ascends:
            pixels, counts = new_pixel[new_start[d] : n].copy(), new_count[new_start[d] : n].copy()
            order = np.argsort(pixels)
            for i in range(len(order)):
                new_pixel[new_start[d] + i] = pixels[order[i]]
                new_count[new_start[d] + i] = counts[order[i]]
