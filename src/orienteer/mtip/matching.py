"""Hard matching: of many orientations the one that fits each frame best, streamed in tiles.

It is the limit of the posterior at temperature 0, and needs no memory for scores: slices are made, or come
from references, are scored with one matrix product, and forgotten; of every frame the best so far is kept.
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
    """The best of all rows for D frames: ``row`` (D,) int64, and its ``score`` (D,) float32, in nats."""

    row: Array
    score: Array


def match(likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch) -> Matches:
    """The best row of every frame of a batch; of equal ones the first, in whatever order tiles come.

    expander : makes slices, or has them (``references.expander.ReferenceExpander``).
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
