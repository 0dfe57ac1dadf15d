"""Hard matching: for each frame the orientation that fits best, searched tile by tile.

This is the limit of the posterior at temperature 0, for benchmarks and for who wants a single pose of each
frame; the loop of M-TIP uses the posterior (``reconstruction/orienting``).  It needs no memory for scores:
the slices of a tile are made, or come from references, and are scored with one matrix product; only the best
row so far of every frame is kept.
"""

from dataclasses import dataclass

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.likelihood.base import Likelihood
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import can_fuse, score_tile
from orienteer.reconstruction.orienting.rows import RowSpace


@dataclass(frozen=True, eq=False)
class Matches:
    """The best row for each of D frames: ``row`` (D,) int64, and its ``score`` (D,) float32, in nats."""

    row: Array
    score: Array


def match(likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch) -> Matches:
    """The best row for every frame of a batch; among equals the first row, whatever the order of the tiles.

    expander : makes slices, or reads kept ones (``references.expander.ReferenceExpander``).
    """
    xp = array_namespace(batch.fluence)
    best = xp.full(len(batch), -np.inf, dtype=np.float32)
    row = xp.zeros(len(batch), dtype=np.int64)
    fused = can_fuse(likelihood, batch, expander)
    for tile in expander.tiles(rows):
        is_fused = fused and tile.model is not None
        slices = expander.turned(rows, tile) if is_fused else expander.slices(rows, tile, batch.by_pixel)
        scores = score_tile(likelihood, slices, batch)
        here = scores.argmax(axis=0)
        top = xp.take_along_axis(scores, here[None], axis=0)[0]
        here = here + tile.first
        is_better = (top > best) | ((top == best) & (here < row))
        row = xp.where(is_better, here, row)
        best = xp.where(is_better, top, best)
    return Matches(row, best)
