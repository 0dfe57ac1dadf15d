"""Products of listed pairs of a block of rows and a frame: the block-sparse form of a coarse-to-fine search.

Block b is the rows ``block_start[b]:block_start[b + 1]`` of a tile; its pairs are the frames
``frame[pair_start[b]:pair_start[b + 1]]``.  Values are stored pair after pair, one for each row of its block.
"""

from typing import TypeAlias

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.likelihood.dense_product import DenseProduct
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.panels import Panels
from orienteer.likelihood.photon_lists import Blocks
from orienteer.likelihood.sparse_product import SparseProduct

AnyProduct: TypeAlias = "DenseProduct | SparseProduct | FrameBatch"


def value_start(block_start: Array, pair_start: Array) -> Array:
    """(B + 1,) int64: where the values of each block begin, and their number at the end.

    >>> value_start(np.array([0, 2, 5]), np.array([0, 3, 4]))
    array([0, 6, 9])
    """
    xp = array_namespace(block_start)
    start = xp.zeros(len(block_start), dtype=np.int64)
    start[1:] = xp.cumulative_sum((block_start[1:] - block_start[:-1]) * (pair_start[1:] - pair_start[:-1]))
    return start


def listed_scores(
    product: AnyProduct, operand: Array | Panels, block_start: Array, pair_start: Array, frame: Array
) -> Array:
    """Scores of the listed pairs only: (n_values,) float32, pair after pair.

    product : a DenseProduct or SparseProduct, or frames.
    operand : in the product's layout, rows 0 to ``block_start[-1]`` at least; lists of photons on the CPU
        also take panels.
    block_start, pair_start : (B + 1,) integers.
    frame : (n_pairs,) integers.
    """
    product = _as_product(product)
    blocks, n_values = _blocks(product.frames, block_start, pair_start, frame)
    n_rows = operand.n_rows if isinstance(operand, Panels) else operand.shape[1 if product.by_pixel else 0]
    if int(block_start[-1]) > n_rows:
        raise OrienteerError(f"the blocks need {int(block_start[-1])} rows; the operand has {n_rows}.")
    values = array_namespace(product.frames.squares).empty(n_values, dtype=np.float32)
    if n_values:
        product.fill_listed_scores(operand, blocks, values)
    return values


def listed_merge(
    product: AnyProduct, values: Array, block_start: Array, pair_start: Array, frame: Array
) -> Array:
    """Sum over the listed pairs of values * K: (P, T) or (T, P) float32, T = ``block_start[-1]``.

    values : (n_values,) float32, as :func:`listed_scores` gives them.
    """
    product = _as_product(product)
    blocks, n_values = _blocks(product.frames, block_start, pair_start, frame)
    if values.shape != (n_values,):
        raise OrienteerError(f"values of shape {values.shape} were given; the listed pairs have {n_values}.")
    xp, n_rows, n_pixels = array_namespace(values), int(block_start[-1]), product.frames.n_pixels
    out = xp.zeros((n_pixels, n_rows) if product.by_pixel else (n_rows, n_pixels), dtype=np.float32)
    if n_values:
        product.add_listed_merge(xp.ascontiguousarray(values, dtype=np.float32), blocks, out)
    return out


def _as_product(product: AnyProduct) -> DenseProduct | SparseProduct:
    if not isinstance(product, FrameBatch):
        return product
    return DenseProduct(product) if product.photons is None else SparseProduct(product)


def _blocks(frames: FrameBatch, block_start: Array, pair_start: Array, frame: Array) -> tuple[Blocks, int]:
    """(block_start, pair_start, value_start, frame) as int64 on the frames' device, checked; and n_values.

    Starts in host memory are checked there, so that nothing waits for the GPU.  Frames are checked only if
    they are in host memory.
    """
    if len(block_start) != len(pair_start) or len(block_start) == 0:
        raise OrienteerError(
            f"{len(block_start)} starts of blocks and {len(pair_start)} of pairs do not fit."
        )
    ends = int(block_start[0]), int(pair_start[0]), int(pair_start[-1])
    if ends[0] < 0 or ends[1:] != (0, len(frame)):
        n_listed = counted(len(frame), "frame is", "frames are")
        raise OrienteerError(f"pairs run from {ends[1]} to {ends[2]}, but {n_listed} listed.")
    if bool((block_start[1:] < block_start[:-1]).any()) or bool((pair_start[1:] < pair_start[:-1]).any()):
        raise OrienteerError("the starts of blocks and of pairs must not descend.")
    if not is_on_gpu(frame) and len(frame) and not 0 <= int(frame.min()) <= int(frame.max()) < len(frames):
        raise OrienteerError(f"a listed frame is not among the {len(frames)} frames.")
    starts = value_start(block_start, pair_start)
    n_values = int(starts[-1])
    xp = array_namespace(frames.squares)
    lists = (xp.asarray(array) for array in (block_start, pair_start, starts, frame))
    first, second, third, fourth = (xp.ascontiguousarray(array, dtype=np.int64) for array in lists)
    return (first, second, third, fourth), n_values
