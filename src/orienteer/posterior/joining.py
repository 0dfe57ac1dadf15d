"""Posteriors of frames whose rows lie on several ranks: each rank has its best row and sums below it.

Every rank sums below a maximum of its own.  That of all is the highest of them; the others shift their
distances down to it.
"""

from typing import NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.compute.ranks.comm import Comm
from orienteer.posterior.grouping import starts_of
from orienteer.posterior.responsibilities import Responsibilities


class Tops(NamedTuple):
    """What some rows say about D frames, (D,) each.

    top : the highest tempered score, against a reference that all ranks share.
    total, moment : sums of e^x and x e^x over distances x below it, float64; a total of 0: no row can be.
    best_row, best_score : where it is, int64, and the score there before tempering, float32.
    key : float64, what decides between best rows of several ranks; of equal ones the first row counts.
    """

    top: Array
    total: Array
    moment: Array
    best_row: Array
    best_score: Array
    key: Array


def join_tops(comm: Comm, own: Tops) -> tuple[Tops, Array]:
    """The same of the rows of all ranks, and the distance (D,) float32 of this rank's top below theirs."""
    xp = array_namespace(own.total)
    possible = own.total > 0
    height = xp.where(possible, own.top.astype(np.float64), -np.inf)
    key = xp.where(possible, own.key, -np.inf)
    score = own.best_score.astype(np.float64)
    columns = [height, key, own.total, own.moment, own.best_row.astype(np.float64), score]
    # One gather of few numbers, of which every rank then makes the same; rows are exact up to 2^53.
    heights, keys, totals, moments, rows, scores = comm.rows(xp.stack(columns)[None]).transpose(1, 0, 2)
    highest = heights.max(axis=0)
    below = xp.where(xp.isfinite(heights), heights - xp.where(xp.isfinite(highest), highest, 0), -np.inf)
    factor, finite = xp.exp(below), xp.where(xp.isfinite(below), below, 0)
    first = xp.where(keys == keys.max(axis=0), rows, np.inf).min(axis=0)
    chosen = xp.where((rows == first) & (keys == keys.max(axis=0)), scores, -np.inf).max(axis=0)
    joined = Tops(
        xp.where(xp.isfinite(highest), highest, 0),
        (factor * totals).sum(axis=0),
        (factor * (moments + finite * totals)).sum(axis=0),
        xp.where(xp.isfinite(first), first, 0).astype(np.int64),
        chosen.astype(np.float32),
        keys.max(axis=0),
    )
    shift = xp.where(possible & xp.isfinite(highest), height - joined.top, 0)
    return joined, shift.astype(np.float32)


def join_lists(comm: Comm, own: Responsibilities) -> Responsibilities:
    """The lists of all ranks, of which each has some of the rows of every frame."""
    if comm.size == 1:
        return own
    xp = array_namespace(own.row)
    frame, row, probability = comm.rows(own.frame), comm.rows(own.row), comm.rows(own.probability)
    order = xp.argsort(frame.astype(np.int64) * own.n_rows + row)
    start = starts_of(xp.bincount(frame, minlength=own.n_frames))
    return Responsibilities(own.n_rows, start, row[order], probability[order])
