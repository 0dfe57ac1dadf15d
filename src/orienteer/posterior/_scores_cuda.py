"""Launches ``scores.cu`` and ``probabilities.cu`` under the names and arguments of their CPU twins."""

from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array
from orienteer.compute.kernels import load_kernels
from orienteer.likelihood.score_law import ScoreLaw

_ROWS_PER_CHUNK = 256
VECTOR = 4  # frames of a thread: 1, 2 or 4
_LAWS = {"linear": 1, "gaussian": 2}  # as in scores.cu
_MASS_ROWS, _MASS_THREADS = 8, 128  # as in probabilities.cu


def stride_of(n_frames: int) -> int:
    """Numbers from one row of scores to the next, such that rows are aligned for vectors."""
    return -(-n_frames // 8) * 8


def _kernel(name: str, file: str = "scores.cu", options: tuple[str, ...] = ()) -> Any:
    return load_kernels(Path(__file__).with_name(file), (f"-DVECTOR={VECTOR}", *options)).get_function(name)


def _of_probabilities(name: str) -> Any:
    return _kernel(name, "probabilities.cu")


def _stride(below: Array) -> Any:
    return np.int64(below.strides[0] // below.itemsize)


def _blocks(n: int, size: int) -> int:
    return (n + size - 1) // size


def add_tile(
    scores: Array, first_row: int, reference: Array, log_prior: Array, beta: Array, below: Array,
    tile_top: Array, total: Array, moment: Array, top: Array, best_row: Array, best_score: Array,
    law: ScoreLaw | None = None,
) -> None:  # fmt: skip
    """Store a tile (T, D) in ``below`` (K, D), with its top and sums, and update the best of every frame.

    law : turns the products in the tile into scores; None: the tile holds scores.
    """
    import cupy

    T, D = scores.shape
    chunks = _blocks(T, 64)
    grid, block = (_blocks(D, 64 * VECTOR), chunks), (64, 4)
    before, key = cupy.empty(D, np.uint64), cupy.empty(D, np.uint64)
    _kernel("begin_key")((_blocks(D, 128),), (128,), (np.int32(D), top, best_row, before, key))
    of_law: tuple[Any, ...] = (np.uintp(0), np.uintp(0), np.float64(0))
    options: tuple[str, ...] = ()
    if law is not None:
        per_row, per_frame = (cupy.ascontiguousarray(x, np.float64) for x in (law.per_row, law.per_frame))
        of_law = (per_row, per_frame, np.float64(law.number))
        options = (f"-DLAW={_LAWS[law.kind]}",)
    sizes = np.int32(T), np.int32(D), np.int32(first_row)
    tile = (scores, *sizes, *of_law, reference, log_prior, beta, key)
    _kernel("raise_top", options=options)(grid, block, tile)
    totals, moments = cupy.empty((chunks, D), np.float32), cupy.empty((chunks, D), np.float32)
    _kernel("store_tile", options=options)(
        grid, block, (*tile, before, below, _stride(below), tile_top, best_score, totals, moments)
    )
    sums = (np.int32(D), np.int32(chunks), before, key, totals, moments, total, moment, top, best_row)
    _kernel("sum_tile")((_blocks(D, 128),), (128,), sums)


def count_distances(below: Array, tile_of_row: Array, offset: Array, counts: Array) -> None:
    """Count entries per bin of distance below the frame's best: (N_BINS + 1, D) int32, 0 on entry."""
    K, D = below.shape
    arguments = (below, _stride(below), tile_of_row, offset, np.int32(K), np.int32(D), counts)
    _kernel("count_distances")((_blocks(D, 32 * VECTOR), _blocks(K, 1024)), (32, 8), arguments)


def kept_sums(
    below: Array, tile_of_row: Array, offset: Array, lowest: Array, first: Array, last: Array, sums: Array
) -> None:
    """Sum of exp(distance) over entries above the threshold, of rows first .. last of a tile: (parts, D)."""
    parts, D = sums.shape
    arguments = (below, _stride(below), tile_of_row, offset, lowest, first, last, np.int32(D), sums)
    if parts:
        _kernel("kept_sums")((_blocks(D, 64 * VECTOR), parts), (64, 4), arguments)


def responsibilities(
    below: Array, tile_of_row: Array, offset: Array, lowest: Array, factor: Array, first: int, out: Array
) -> None:
    """Write factor[d] exp(distance) of rows first .. first + T into out (T, D) float32."""
    T, D = out.shape
    sizes = np.int32(first), np.int32(T), np.int32(D)
    arguments = (below, _stride(below), tile_of_row, offset, lowest, factor, *sizes, out)
    if T:
        grid = (_blocks(D, 128 * VECTOR), min(_blocks(T, 16), 32_768))
        _of_probabilities("responsibilities")(grid, (128,), arguments)


def row_mass(
    below: Array, tile_of_row: Array, offset: Array, lowest: Array, factor: Array, out: Array
) -> None:
    """Write the sum over frames of factor[d] exp(distance) of every row, out (K,) float64."""
    K, D = below.shape
    arguments = (below, _stride(below), tile_of_row, offset, lowest, factor, np.int32(K), np.int32(D), out)
    _of_probabilities("row_mass")((_blocks(K, _MASS_ROWS),), (_MASS_THREADS,), arguments)


def list_kept(
    below: Array, tile_of_row: Array, offset: Array, lowest: Array, factor: Array, start: Array, row: Array,
    probability: Array,
) -> None:  # fmt: skip
    """List rows (ascending) and probabilities of every frame's kept entries from start[d] on."""
    import cupy

    K, D = below.shape
    grid, block = (_blocks(D, 128), _blocks(K, _ROWS_PER_CHUNK)), (128,)
    sizes = (np.int32(K), np.int32(D))
    counts = cupy.empty((grid[1], D), np.int64)
    stored = (below, _stride(below), tile_of_row, offset, lowest)
    _of_probabilities("count_kept")(grid, block, (*stored, *sizes, counts))
    place = cupy.cumsum(counts, axis=0) - counts + start[:-1]
    arguments = (*stored, factor, *sizes, place, row, probability)
    _of_probabilities("list_kept")(grid, block, arguments)


def untempered(below: Array, top: Array, log_prior: Array, beta: Array, reference: Array, out: Array) -> None:
    """Write reference[d] + (below + top[d] - log_prior[k]) / beta[d] into out (T, D) float32."""
    T, D = out.shape
    arguments = (below, _stride(below), top, log_prior, beta, reference, np.int32(T), np.int32(D), out)
    if T:
        _of_probabilities("untempered")((_blocks(D, 128 * VECTOR), min(T, 32_768)), (128,), arguments)
