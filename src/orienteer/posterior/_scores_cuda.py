"""Launches the kernels of ``scores.cu`` under the names and arguments of their CPU twins."""

from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array
from orienteer.compute.kernels import load_kernels

_ROWS_PER_CHUNK = 256


def _kernel(name: str) -> Any:
    return load_kernels(Path(__file__).with_name("scores.cu")).get_function(name)


def _blocks(n: int, size: int) -> int:
    return (n + size - 1) // size


def add_tile(
    scores: Array, first_row: int, reference: Array, log_prior: Array, beta: Array, below: Array,
    tile_top: Array, top: Array, total: Array, moment: Array, best_row: Array, best_score: Array,
) -> None:  # fmt: skip
    """Keep a tile (T, D) in ``below`` (K, D), and bring the frames' maximum, sums and best row up to date."""
    import cupy

    T, D = scores.shape
    chunks = _blocks(T, 64)
    grid, block = (_blocks(D, 64), chunks), (64, 4)
    key = cupy.empty(D, np.uint64)
    _kernel("begin_key")((_blocks(D, 128),), (128,), (np.int32(D), top, total, best_row, key))
    tile = (scores, np.int32(T), np.int32(D), np.int32(first_row), reference, log_prior, beta, key)
    _kernel("raise_top")(grid, block, tile)
    totals, moments = cupy.empty((chunks, D), np.float32), cupy.empty((chunks, D), np.float32)
    _kernel("store_tile")(grid, block, (*tile, below, tile_top, best_score, totals, moments))
    sums = (np.int32(D), np.int32(chunks), key, totals, moments, top, total, moment, best_row)
    _kernel("join_tile")((_blocks(D, 128),), (128,), sums)


def count_distances(below: Array, tile_of_row: Array, offset: Array, counts: Array) -> None:
    """Number of entries per bin of distance below the frame's best, (N_BINS + 1, D) int32, zero before."""
    K, D = below.shape
    arguments = (below, tile_of_row, offset, np.int32(K), np.int32(D), counts)
    _kernel("count_distances")((_blocks(D, 32), _blocks(K, 1024)), (32, 8), arguments)


def kept_sums(below: Array, tile_of_row: Array, offset: Array, lowest: Array, sums: Array) -> None:
    """Sum of exp(distance) over entries above the threshold, per 256 rows: sums (parts, D) float64."""
    K, D = below.shape
    arguments = (below, tile_of_row, offset, lowest, np.int32(K), np.int32(D), sums)
    _kernel("kept_sums")((_blocks(D, 64), _blocks(K, _ROWS_PER_CHUNK)), (64, 4), arguments)


def responsibilities(
    below: Array, tile_of_row: Array, offset: Array, lowest: Array, factor: Array, first: int, out: Array
) -> None:
    """Write factor[d] exp(distance) of rows first .. first + T into out (T, D) float32."""
    T, D = out.shape
    arguments = (below, tile_of_row, offset, lowest, factor, np.int32(first), np.int32(T), np.int32(D), out)
    if T:
        _kernel("responsibilities")((_blocks(D, 256), min(T, 32_768)), (256,), arguments)


def row_mass(
    below: Array, tile_of_row: Array, offset: Array, lowest: Array, factor: Array, out: Array
) -> None:
    """Write the sum over frames of factor[d] exp(distance) of every row, out (K,) float64."""
    K, D = below.shape
    _kernel("row_mass")((K,), (256,), (below, tile_of_row, offset, lowest, factor, np.int32(D), out))


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
    _kernel("count_kept")(grid, block, (below, tile_of_row, offset, lowest, *sizes, counts))
    place = cupy.cumsum(counts, axis=0) - counts + start[:-1]
    arguments = (below, tile_of_row, offset, lowest, factor, *sizes, place, row, probability)
    _kernel("list_kept")(grid, block, arguments)


def untempered(below: Array, top: Array, log_prior: Array, beta: Array, reference: Array, out: Array) -> None:
    """Write reference[d] + (below + top[d] - log_prior[k]) / beta[d] into out (T, D) float32."""
    T, D = out.shape
    arguments = (below, top, log_prior, beta, reference, np.int32(T), np.int32(D), out)
    if T:
        _kernel("untempered")((_blocks(D, 256), min(T, 32_768)), (256,), arguments)
