"""CPU twin of ``scores.cu``: tempered scores kept as distances below a maximum, and probabilities from them.

A task has its frames (or rows) to itself and walks in a fixed order: the number of threads changes no bit.
"""

import numpy as np
from numba import njit, prange

from orienteer.posterior._evidence_numba import ROWS, accumulate, join
from orienteer.posterior._exponential_numba import FAST, exponential
from orienteer.posterior.threshold import BINS_PER_NAT, N_BINS

_FRAMES = 128
_WIDTH = np.float32(BINS_PER_NAT)
_OUTSIDE = np.float32(N_BINS)
_LEAST = np.float32(-3.4e38)
_ROWS_PER_PART = 256


@njit(nogil=True, cache=True, fastmath=FAST)
def temper_and_rank(scores, reference, beta, log_prior, x, top, best):  # type: ignore[no-untyped-def]
    """x = beta (S - reference) + log_prior (T, n), its maximum so far (n,) and the row where it is (n,)."""
    for k in range(scores.shape[0]):
        prior = log_prior[k]
        row = np.int32(k)
        for d in range(scores.shape[1]):
            value = beta[d] * (scores[k, d] - reference[d]) + prior
            x[k, d] = value
            higher = value > top[d]
            best[d] = row if higher else best[d]
            top[d] = value if higher else top[d]


@njit(nogil=True, cache=True, fastmath=FAST)
def lower(x, top):  # type: ignore[no-untyped-def]
    """x - top in place, (T, n) and (n,); what is not a number becomes -inf."""
    for k in range(x.shape[0]):
        for d in range(x.shape[1]):
            below = x[k, d] - top[d]
            x[k, d] = below if below > _LEAST else np.float32(-np.inf)


@njit(nogil=True, parallel=True, cache=True)
def add_tile(scores, first_row, reference, log_prior, beta, below, tile_top, top, total, moment, best_row, best_score):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Keep a tile (T, D) in ``below`` (K, D), and bring the frames' maximum, sums and best row up to date."""
    T, D = scores.shape
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        first = task * _FRAMES
        last = min(first + _FRAMES, D)
        n = last - first
        x = below[first_row : first_row + T, first:last]
        best = np.full(n, -1, np.int32)
        highest = top[first:last].copy()
        temper_and_rank(
            scores[:, first:last], reference[first:last], beta[first:last], log_prior, x, highest, best
        )
        lower(x, highest)
        tile_top[first:last] = highest
        zero = np.zeros(n, np.float32)
        part_total, part_moment = np.empty(n, np.float32), np.empty(n, np.float32)
        for start in range(0, T, ROWS):
            part_total[:] = np.float32(0)
            part_moment[:] = np.float32(0)
            accumulate(x[start : start + ROWS], zero, part_total, part_moment)
            join(top[first:last], total[first:last], moment[first:last], highest, part_total, part_moment)
        for d in range(n):
            if best[d] >= 0:
                best_row[first + d] = first_row + best[d]
                best_score[first + d] = scores[best[d], first + d]


@njit(nogil=True, parallel=True, cache=True)
def count_distances(below, tile_of_row, offset, counts):  # type: ignore[no-untyped-def]
    """Number of entries per bin of distance below the frame's best, (N_BINS + 1, D) int32, zero before."""
    K, D = below.shape
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        first = task * _FRAMES
        last = min(first + _FRAMES, D)
        own = np.zeros((last - first, N_BINS + 2), np.int32)  # the last one for the impossible
        for k in range(K):
            tile = tile_of_row[k]
            if tile < 0:
                continue
            for d in range(first, last):
                place = -(below[k, d] + offset[tile, d]) * _WIDTH
                bin_ = np.int32(place) if place < _OUTSIDE else N_BINS + np.int32(place == np.inf)
                own[d - first, bin_] += 1
        counts[:, first:last] = own[:, : N_BINS + 1].T


@njit(nogil=True, cache=True, fastmath=FAST)
def probabilities(below, offset, lowest, factor, out):  # type: ignore[no-untyped-def]
    """factor exp(distance) where the distance below + offset is above the threshold; all (n,)."""
    for d in range(below.size):
        distance = below[d] + offset[d]
        p = exponential(distance) * factor[d]
        out[d] = p if distance > lowest[d] else np.float32(0)


@njit(nogil=True, parallel=True, cache=True)
def kept_sums(below, tile_of_row, offset, lowest, sums):  # type: ignore[no-untyped-def]
    """Sum of exp(distance) over entries above the threshold, per part of rows: sums (parts, D) float64."""
    K, D = below.shape
    one = np.ones(D, np.float32)
    for part in prange(sums.shape[0]):
        p = np.empty(D, np.float32)
        sums[part] = 0.0
        for k in range(part * _ROWS_PER_PART, min((part + 1) * _ROWS_PER_PART, K)):
            if tile_of_row[k] >= 0:
                probabilities(below[k], offset[tile_of_row[k]], lowest, one, p)
                for d in range(D):
                    sums[part, d] += p[d]


@njit(nogil=True, parallel=True, cache=True)
def responsibilities(below, tile_of_row, offset, lowest, factor, first, out):  # type: ignore[no-untyped-def]
    """Write factor[d] exp(distance) of rows first .. first + T into out (T, D)."""
    for k in prange(out.shape[0]):
        tile = tile_of_row[first + k]
        if tile < 0:
            out[k] = np.float32(0)
        else:
            probabilities(below[first + k], offset[tile], lowest, factor, out[k])


@njit(nogil=True, parallel=True, cache=True)
def row_mass(below, tile_of_row, offset, lowest, factor, first, out):  # type: ignore[no-untyped-def]
    """Write the sum over frames of factor[d] exp(distance) of rows first .. first + T, out (T,) float64."""
    D = below.shape[1]
    for k in prange(out.shape[0]):
        tile = tile_of_row[first + k]
        total = 0.0
        if tile >= 0:
            p = np.empty(D, np.float32)
            probabilities(below[first + k], offset[tile], lowest, factor, p)
            for d in range(D):
                total += p[d]
        out[k] = total


@njit(nogil=True, parallel=True, cache=True)
def list_kept(below, tile_of_row, offset, lowest, factor, start, row, probability):  # type: ignore[no-untyped-def]
    """List rows (ascending) and probabilities of every frame's kept entries from start[d] on."""
    K, D = below.shape
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        first = task * _FRAMES
        last = min(first + _FRAMES, D)
        place = start[first:last].copy()
        for k in range(K):
            tile = tile_of_row[k]
            if tile < 0:
                continue
            for d in range(first, last):
                distance = below[k, d] + offset[tile, d]
                if distance > lowest[d]:
                    row[place[d - first]] = k
                    probability[place[d - first]] = exponential(distance) * factor[d]
                    place[d - first] += 1
