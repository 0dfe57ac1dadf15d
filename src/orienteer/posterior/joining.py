"""Joins posteriors of frames whose rows are divided among ranks: the best rows, and the lists."""

from typing import NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.compute.ranks.comm import Comm
from orienteer.posterior.grouping import starts_of
from orienteer.posterior.responsibilities import Responsibilities


class Best(NamedTuple):
    """The best of some rows for D frames, (D,) each.

    top : the highest tempered score, from the same reference on all ranks; -inf or below all scores if there
        is none.
    row, score : its row, int64, and the score there before tempering, float32.
    """

    top: Array
    row: Array
    score: Array


def join_best(comm: Comm, own: Best) -> Best:
    """The best of the rows of all ranks; of equal ones, that with the lowest row."""
    if comm.size == 1:
        return own
    xp = array_namespace(own.top)
    # One gather of few numbers, from which every rank gets the same result; rows are exact up to 2^53.
    columns = xp.stack([column.astype(np.float64) for column in own])
    tops, rows, scores = comm.rows(columns[None]).transpose(1, 0, 2)
    top = tops.max(axis=0)
    row = xp.where(tops == top, rows, np.inf).min(axis=0)
    score = xp.where((tops == top) & (rows == row), scores, -np.inf).max(axis=0)
    return Best(top.astype(own.top.dtype), row.astype(np.int64), score.astype(np.float32))


def join_lists(comm: Comm, own: Responsibilities) -> Responsibilities:
    """The joined lists of all ranks; each rank has some of the rows of every frame."""
    if comm.size == 1:
        return own
    xp = array_namespace(own.row)
    frame, row, probability = comm.rows(own.frame), comm.rows(own.row), comm.rows(own.probability)
    order = xp.argsort(frame.astype(np.int64) * own.n_rows + row)
    start = starts_of(xp.bincount(frame, minlength=own.n_frames))
    return Responsibilities(own.n_rows, start, row[order], probability[order])
