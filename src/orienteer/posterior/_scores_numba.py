"""CPU twin of ``scores.cu``: tempered scores kept as distances below a maximum, and probabilities from them.

One task does all work of its frames (or rows), in a fixed order: the number of threads changes no bit.
"""

import numpy as np
from numba import njit, prange

from orienteer.posterior._evidence_numba import ROWS
from orienteer.posterior._exponential_numba import FAST, exponential
from orienteer.posterior.threshold import BINS_PER_NAT, N_BINS

_FRAMES = 128
_WIDTH = np.float32(BINS_PER_NAT)
_OUTSIDE, _IMPOSSIBLE = np.float32(N_BINS), np.float32(N_BINS + 1)
_LEAST = np.float32(-3.4e38)
_NOTHING = np.float32(-3e38)


# The innermost loops run over contiguous pieces of single rows, which the compiler can turn into vectors.


@njit(nogil=True, cache=True, fastmath=FAST)
def temper_and_rank(scores, reference, beta, log_prior, row, x, top, best):  # type: ignore[no-untyped-def]
    """x = beta (S - reference) + log_prior of a row, its maximum so far and where it is; arrays all (n,)."""
    for d in range(x.size):
        value = beta[d] * (scores[d] - reference[d]) + log_prior
        x[d] = value
        higher = value > top[d]
        best[d] = row if higher else best[d]
        top[d] = value if higher else top[d]


@njit(nogil=True, cache=True, fastmath=FAST)
def lower_and_sum(x, top, total, moment):  # type: ignore[no-untyped-def]
    """x - top in place, -inf where it is NaN, and sums of e^x and x e^x of it; all (n,)."""
    for d in range(x.size):
        below = x[d] - top[d]
        possible = below > _LEAST
        x[d] = below if possible else np.float32(-np.inf)
        p = exponential(below)
        total[d] += p
        moment[d] += p * (below if possible else np.float32(0))


@njit(nogil=True, parallel=True, cache=True)
def add_tile(scores, first_row, reference, log_prior, beta, below, tile_top, total, moment, top, best_row, best_score):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Store a tile (T, D) in ``below`` (K, D), with its top and sums, and update the best of every frame."""
    T, D = scores.shape
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        first = task * _FRAMES
        last = min(first + _FRAMES, D)
        n = last - first
        best = np.full(n, -1, np.int32)
        # Relative to the tile's own top, not the highest so far, so that earlier tiles change no bit.
        highest, before = tile_top[first:last], top[first:last].copy()
        highest[:] = _NOTHING
        reference_, beta_ = reference[first:last], beta[first:last]
        for k in range(T):
            x = below[first_row + k][first:last]
            temper_and_rank(
                scores[k][first:last], reference_, beta_, log_prior[k], np.int32(k), x, highest, best
            )
        part_total, part_moment = np.empty(n, np.float32), np.empty(n, np.float32)
        total[first:last] = 0.0
        moment[first:last] = 0.0
        for start in range(0, T, ROWS):
            part_total[:] = np.float32(0)
            part_moment[:] = np.float32(0)
            for k in range(start, min(start + ROWS, T)):
                lower_and_sum(below[first_row + k][first:last], highest, part_total, part_moment)
            for d in range(n):
                total[first + d] += part_total[d]
                moment[first + d] += part_moment[d]
        for d in range(n):
            # Of equal ones the lowest row, in whatever order tiles come.
            is_first = highest[d] == before[d] and first_row + best[d] < best_row[first + d]
            if best[d] >= 0 and (highest[d] > before[d] or is_first):
                top[first + d] = highest[d]
                best_row[first + d] = first_row + best[d]
                best_score[first + d] = scores[best[d], first + d]


@njit(nogil=True, cache=True, fastmath=FAST)
def places(below, offset, place):  # type: ignore[no-untyped-def]
    """Place of each frame's entry among bins of all frames, N_BINS + 2 each, the last for the impossible."""
    for d in range(below.size):
        distance = below[d] + offset[d]
        bin_ = min(-distance * _WIDTH, _OUTSIDE)
        bin_ = bin_ if distance > _LEAST else _IMPOSSIBLE
        place[d] = np.uint32(d * (N_BINS + 2)) + np.uint32(np.int32(bin_))


@njit(nogil=True, parallel=True, cache=True)
def count_distances(below, tile_of_row, offset, counts):  # type: ignore[no-untyped-def]
    """Number of entries per bin of distance below the frame's best: counts (N_BINS + 1, D) int32."""
    K, D = below.shape
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        first = task * _FRAMES
        last = min(first + _FRAMES, D)
        own = np.zeros((last - first) * (N_BINS + 2), np.int32)
        place = np.empty(last - first, np.uint32)
        for k in range(K):
            if tile_of_row[k] >= 0:
                places(below[k][first:last], offset[tile_of_row[k]][first:last], place)
                for p in place:
                    own[p] += 1
        counts[:, first:last] = own.reshape(last - first, N_BINS + 2)[:, : N_BINS + 1].T


@njit(nogil=True, cache=True, fastmath=FAST)
def probabilities(below, offset, lowest, factor, out):  # type: ignore[no-untyped-def]
    """factor exp(distance) where the distance below + offset is above the threshold; all (n,)."""
    for d in range(below.size):
        distance = below[d] + offset[d]
        p = exponential(distance) * factor[d]
        out[d] = p if distance > lowest[d] else np.float32(0)


@njit(nogil=True, parallel=True, cache=True)
def kept_sums(below, tile_of_row, offset, lowest, first, last, sums):  # type: ignore[no-untyped-def]
    """Sum of exp(distance) over entries above the threshold, of rows first .. last of a tile: (parts, D)."""
    D = below.shape[1]
    one = np.ones(D, np.float32)
    for part in prange(sums.shape[0]):
        p = np.empty(D, np.float32)
        sums[part] = 0.0
        for k in range(first[part], last[part]):
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


@njit(nogil=True, cache=True, fastmath=FAST)
def sum_of(p):  # type: ignore[no-untyped-def]
    """Sum in float64 of (n,) float32, in an order that the compiler fixes."""
    total = 0.0
    for d in range(p.size):
        total += p[d]
    return total


@njit(nogil=True, parallel=True, cache=True)
def row_mass(below, tile_of_row, offset, lowest, factor, out):  # type: ignore[no-untyped-def]
    """Write the sum over frames of factor[d] exp(distance) of every row, out (K,) float64."""
    D = below.shape[1]
    for k in prange(out.shape[0]):
        tile = tile_of_row[k]
        total = 0.0
        if tile >= 0:
            p = np.empty(D, np.float32)
            probabilities(below[k], offset[tile], lowest, factor, p)
            total = sum_of(p)
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


def untempered(below, top, log_prior, beta, reference, out):  # type: ignore[no-untyped-def]
    """Write reference[d] + (below + top[d] - log_prior[k]) / beta[d] into out (T, D) float32."""
    out[...] = reference + (below + top - log_prior[:, None]) / np.maximum(beta, np.float32(1e-30))
