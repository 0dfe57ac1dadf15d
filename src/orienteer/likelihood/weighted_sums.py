"""Weighted sums over the rows or frames of a tile, without a float64 copy of the tile.

On the CPU in float64; on the GPU by matrix products in float32, whose result is converted to float64.
"""

import numpy as np

from orienteer.compute.arrays import Array, is_on_gpu


def sum_over_frames(table: Array, per_frame: Array) -> Array:
    """``sum_d table[k, d] * per_frame[d]``, (T,) float64, for a table (T, D)."""
    if is_on_gpu(table):
        return (table @ per_frame.astype(table.dtype)).astype(np.float64)
    from orienteer.likelihood import _weighted_sums_numba as twin

    out = np.empty(table.shape[0])
    twin.sum_over_frames(table, np.ascontiguousarray(per_frame, np.float64), out)
    return out


def sum_over_rows(table: Array, per_row: Array) -> Array:
    """``sum_k table[k, d] * per_row[k]``, (D,) float64, for a table (T, D)."""
    if is_on_gpu(table):
        return (per_row.astype(table.dtype) @ table).astype(np.float64)
    from orienteer.likelihood import _weighted_sums_numba as twin

    out = np.empty(table.shape[1])
    twin.sum_over_rows(table, np.ascontiguousarray(per_row, np.float64), out)
    return out
