"""Launches ``weighing.cu``: what frames deposit into a tile of rows, in one pass over its distances."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, import_cupy
from orienteer.compute.kernels import load_kernels
from orienteer.posterior._scores_cuda import VECTOR

_THREADS, _CHUNK = 128, 32  # as in weighing.cu


class Kept(NamedTuple):
    """Distances of all rows, and numbers that turn them into probabilities: see ``tempered.cuh``."""

    below: Array
    tile_of_row: Array
    offset: Array
    lowest: Array
    factor: Array


class Tempering(NamedTuple):
    """Numbers that turn distances back into scores: top, reference, inverse temperature (D,), prior (T,)."""

    top: Array
    reference: Array
    beta: Array
    log_prior: Array


def weigh(
    kept: Kept, tempering: Tempering, first: int, square: Array, signal: Array, inverse: Array, weight: Array,
    row_factor: Array, counted: Array | None, slope: float, scale: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Numerators (T, D) float16, sums over frames (1 or 2, T) and over rows (D,), both float64.

    The formulas are at the head of ``weighing.cu``.

    first : row at which the tile begins; square, signal : (T,) float64; the others (D,) float32.
    """
    cupy: Any = import_cupy()
    T, D = len(signal), len(kept.factor)
    width = -(-D // 8) * 8
    grid = (-(-D // (_THREADS * VECTOR)), -(-T // _CHUNK))
    numerator = cupy.empty((T, width), np.float16)
    of_rows = cupy.empty((1 if counted is None else 2, grid[0], T), np.float32)
    of_frames = cupy.empty((grid[1], D), np.float32)
    stride = np.int64(kept.below.strides[0] // kept.below.itemsize)
    kernel = load_kernels(Path(__file__).with_name("weighing.cu"), (f"-DVECTOR={VECTOR}",)).get_function(
        "weigh"
    )
    kernel(grid, (_THREADS,), (
        kept.below, stride, *kept[1:], *tempering, square, signal, inverse, weight, row_factor,
        np.uintp(0) if counted is None else counted, np.float32(slope), np.float32(scale),
        np.int32(first), np.int32(T), np.int32(D), np.int32(width), numerator, of_rows, of_frames,
    ))  # fmt: skip
    return numerator[:, :D], of_rows.sum(axis=1, dtype=np.float64), of_frames.sum(axis=0, dtype=np.float64)
