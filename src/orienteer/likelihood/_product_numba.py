"""CPU twin of ``product.cu``: products of lists of photons with tiles of rows.

    score   S[k, d] = sum over scored p of X[p, k] K[d, p]
    merge   M[p, k] = sum over d of w[k, d] K[d, p]

Rows are copied into panels of ``width`` neighbours that lie side by side: a list entry then costs a few
vector instructions on cache lines that are used completely.  One task sums each number of a result in the
order of the list, so the number of threads changes no bit.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

from orienteer.likelihood._row_vectors_numba import LANES, spread_row, sum_rows

# Terms added in float32 before the sum goes on in float64: the error of 1e5 photons stays below 0.01 nat.
_FOLD = 64
_FRAMES_PER_TASK = 64
_BLOCKS_PER_TASK = 8
# Pixels of a part: their sums over one panel of 64 rows fill half of a second-level cache.
PIXELS_PER_PART = 2048


@njit(nogil=True, parallel=True, cache=True)
def pack(table, panels):  # type: ignore[no-untyped-def]
    """panels[b, n, t] = table[n, b * width + t], 0 beyond the table's M columns."""
    B, N, W = panels.shape
    M = table.shape[1]
    tasks = (N + _FRAMES_PER_TASK - 1) // _FRAMES_PER_TASK
    for task in prange(tasks):
        for n in range(task * _FRAMES_PER_TASK, min(N, (task + 1) * _FRAMES_PER_TASK)):
            for b in range(B):
                used = min(W, M - b * W)
                panels[b, n, :used] = table[n, b * W : b * W + used]
                panels[b, n, used:] = 0


@njit(nogil=True, parallel=True, cache=True)
def pack_transposed(table, panels, active):  # type: ignore[no-untyped-def]
    """panels[b, n, t] = table[b * width + t, n]; active[b, n] says whether any of them is not 0."""
    B, N, W = panels.shape
    M = table.shape[0]
    groups = (N + _FRAMES_PER_TASK - 1) // _FRAMES_PER_TASK
    for task in prange(B * groups):
        b, first = task // groups, (task % groups) * _FRAMES_PER_TASK
        last = min(N, first + _FRAMES_PER_TASK)
        used = min(W, M - b * W)
        active[b, first:last] = False
        panels[b, first:last, used:] = 0
        for t in range(used):
            for n in range(first, last):
                value = table[b * W + t, n]
                panels[b, n, t] = value
                active[b, n] |= value != 0


@njit(nogil=True, parallel=True, cache=True)
def part_bounds(start, index, bounds):  # type: ignore[no-untyped-def]
    """bounds[d, s]: first entry of frame d in part s of the pixels, PIXELS_PER_PART each."""
    D, S = bounds.shape
    for d in prange(D):
        e = start[d]
        for s in range(S):
            while e < start[d + 1] and index[e] < s * PIXELS_PER_PART:
                e += 1
            bounds[d, s] = e
        bounds[d, S - 1] = start[d + 1]


@njit(nogil=True, inline="always")
def _sum_list(table, column, index, count, first, last, width, part, total):  # type: ignore[no-untyped-def]
    """total[:] = sum over the list of count * table[index, column:]; ``part`` is scratch."""
    total[:] = 0
    for fold in range(first, last, _FOLD):
        sum_rows(part, table, column, index, count, fold, min(last, fold + _FOLD), width)
        for t in range(width):
            total[t] += part[t]


@cache
def compiled_kernels(width: int) -> tuple[Any, Any, Any]:
    """(scores, merge of few weights, merge) for panels of ``width`` rows."""
    W = width

    @njit(nogil=True, parallel=True, cache=True)
    def scores(panels, start, stop, index, count, out):  # type: ignore[no-untyped-def]
        T, D = out.shape
        groups = (D + _FRAMES_PER_TASK - 1) // _FRAMES_PER_TASK
        for task in prange(panels.shape[0] * groups):
            b, first = task // groups, (task % groups) * _FRAMES_PER_TASK
            n = min(D - first, _FRAMES_PER_TASK)
            part, total = np.empty(W, np.float32), np.empty(W, np.float64)
            block = np.empty((_FRAMES_PER_TASK, W), np.float32)
            for i in range(n):
                d = first + i
                _sum_list(panels[b], 0, index, count, start[d], stop[d], W, part, total)
                for t in range(W):
                    block[i, t] = total[t]
            for t in range(min(W, T - b * W)):
                for i in range(n):
                    out[b * W + t, first + i] = block[i, t]

    @njit(nogil=True, parallel=True, cache=True)
    def merge(panels, start, index, count, out):  # type: ignore[no-untyped-def]
        """From lists of the frames that have photons in a pixel."""
        P, T = out.shape
        groups = (P + _FRAMES_PER_TASK - 1) // _FRAMES_PER_TASK
        for task in prange(panels.shape[0] * groups):
            b, first = task // groups, (task % groups) * _FRAMES_PER_TASK
            part, total = np.empty(W, np.float32), np.empty(W, np.float64)
            used = min(W, T - b * W)
            for p in range(first, min(P, first + _FRAMES_PER_TASK)):
                _sum_list(panels[b], 0, index, count, start[p], start[p + 1], W, part, total)
                for t in range(used):
                    out[p, b * W + t] = total[t]

    @njit(nogil=True, parallel=True, cache=True)
    def merge_few(panels, active, bounds, index, count, out):  # type: ignore[no-untyped-def]
        P, T = out.shape
        D, parts = bounds.shape[0], bounds.shape[1] - 1
        for task in prange(panels.shape[0] * parts):
            b, s = task // parts, task % parts
            first = s * PIXELS_PER_PART
            n = min(P - first, PIXELS_PER_PART)
            # Sums of pixels before this part are never touched: its entries begin at bounds[d, s].
            memory = np.zeros(n * W + LANES, np.float32)
            aligned = -(memory.ctypes.data // 4) % LANES
            sums = memory[aligned : aligned + n * W].reshape(n, W)
            for d in range(D):
                if active[b, d]:
                    row = panels[b, d]
                    spread_row(row, sums, -first * W, index, count, bounds[d, s], bounds[d, s + 1], W)
            used = min(W, T - b * W)
            for i in range(n):
                out[first + i, b * W : b * W + used] = sums[i, :used]

    return scores, merge_few, merge


@njit(nogil=True, parallel=True, cache=True)
def listed_scores(panels, block_start, pair_start, value_start, frame, start, stop, index, count, values):  # type: ignore[no-untyped-def]
    """Scores of the listed pairs of a block of rows and a frame; panels have at least LANES columns."""
    W = panels.shape[2]
    for b in prange(len(block_start) - 1):
        part, total = np.empty(LANES, np.float32), np.empty(LANES, np.float64)
        n_rows = block_start[b + 1] - block_start[b]
        for i in range(pair_start[b + 1] - pair_start[b]):
            d = frame[pair_start[b] + i]
            value = value_start[b] + i * n_rows
            r = 0
            while r < n_rows:
                # Never read beyond the panel: near its end, take the last LANES columns.
                panel, column = (block_start[b] + r) // W, (block_start[b] + r) % W
                used = min(LANES, n_rows - r, W - column)
                shift = max(0, column + LANES - W)
                _sum_list(panels[panel], column - shift, index, count, start[d], stop[d], LANES, part, total)
                for t in range(used):
                    values[value + r + t] = total[shift + t]
                r += used


@njit(nogil=True, parallel=True, cache=True)
def listed_merge(values, block_start, pair_start, value_start, frame, start, index, count, out):  # type: ignore[no-untyped-def]
    """out[p, rows of block b] += value * K[d, p] over the listed pairs.

    A task takes neighbouring blocks, so that vectors may reach over the edge of a block (adding 0 there), and
    never over the edge of the task's columns, where another thread may be at work.
    """
    B = len(block_start) - 1
    for task in prange((B + _BLOCKS_PER_TASK - 1) // _BLOCKS_PER_TASK):
        last_block = min(B, (task + 1) * _BLOCKS_PER_TASK)
        first_column, last_column = block_start[task * _BLOCKS_PER_TASK], block_start[last_block]
        is_wide = last_column - first_column >= LANES
        row = np.empty(LANES, np.float32)
        for b in range(task * _BLOCKS_PER_TASK, last_block):
            n_rows = block_start[b + 1] - block_start[b]
            for i in range(pair_start[b + 1] - pair_start[b]):
                d = frame[pair_start[b] + i]
                value = value_start[b] + i * n_rows
                for r in range(0, n_rows, LANES):
                    column, used = block_start[b] + r, min(LANES, n_rows - r)
                    shift = max(0, column + LANES - last_column) if is_wide else 0
                    row[:] = 0
                    row[shift : shift + used] = values[value + r : value + r + used]
                    if not row.any():
                        continue
                    if is_wide:
                        spread_row(row, out, column - shift, index, count, start[d], start[d + 1], LANES)
                    else:
                        _spread_narrow(row[:used], out, column, index, count, start[d], start[d + 1])


@njit(nogil=True)
def _spread_narrow(row, out, column, index, count, first, last):  # type: ignore[no-untyped-def]
    for e in range(first, last):
        photons = np.float32(count[e])
        for t in range(len(row)):
            out[index[e], column + t] += photons * row[t]
