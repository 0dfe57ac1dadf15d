"""The probability of each of several states for each frame, over all its poses."""

from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.compute.exact_sums import in_parts
from orienteer.compute.ranks.comm import Comm
from orienteer.posterior.blocks import BlockList
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.orienting.listed_rows import owners_of, sum_by
from orienteer.reconstruction.orienting.rows import RowSpace

# Limit of sums of probabilities, with some room.  Sums must not depend on the order of tiles, or on ranks.
_LARGEST = 4.0


class StatePosterior:
    """Probabilities of the states of a batch of D frames, collected from those of their rows.

    A faint frame is spread over many poses: the state of its likeliest pose need not be its likeliest state.

    probability : (M, D) float64, summed over all poses of each state; the rest to 1 is junk.
    best_row : (M, D) int64, the likeliest row of each state.
    """

    def __init__(self, n_states: int, n_frames: int, xp: Any) -> None:
        self.probability: Array = xp.zeros((n_states, n_frames), dtype=np.float64)
        self.best_row: Array = xp.zeros((n_states, n_frames), dtype=np.int64)
        self._top: Array = xp.zeros((n_states, n_frames), dtype=np.float32)

    def add(self, state: int, first_row: int, responsibilities: Array) -> None:
        """Add a tile (T, D) of rows of one state, which begins at ``first_row``."""
        xp = array_namespace(responsibilities)
        self.probability[state] += in_parts(responsibilities.sum(axis=0, dtype=np.float64), _LARGEST)
        row = responsibilities.argmax(axis=0)
        self._raise(state, xp.take_along_axis(responsibilities, row[None], axis=0)[0], first_row + row)

    def add_listed(self, blocks: BlockList, probability: Array, n_poses: int) -> None:
        """Add probabilities (n_values,) of listed rows; each state has ``n_poses`` rows."""
        xp = array_namespace(probability)
        owners = owners_of(blocks)
        frame, row = owners.frame, blocks.row[owners.row].astype(np.int32)
        for state in range(len(self.probability)):
            own = xp.where(row // n_poses == state, probability, np.float32(0))
            self.probability[state] += in_parts(sum_by(frame, own, blocks.n_frames), _LARGEST)
            top = xp.zeros_like(self._top[state])
            xp.maximum.at(top, frame, own)
            best = xp.zeros(len(top), dtype=np.int32)
            is_top = (own > 0) & (own == top[frame])
            # Of equally likely rows the last one counts, on every device.
            xp.maximum.at(best, frame[is_top], row[is_top])
            self._raise(state, top, best)

    def add_all(self, store: ScoreStore, rows: RowSpace) -> None:
        """Add all rows of a store."""
        for tile in rows.tiles():
            if tile.model is not None:
                self.add(tile.model, tile.first, store.responsibilities(tile.first, tile.last))

    def join(self, comm: Comm) -> None:
        """Join the probabilities of ranks that share the rows of the same frames."""
        if comm.size == 1:
            return
        xp = array_namespace(self.probability)
        columns = xp.stack([self.probability, self._top.astype(np.float64), self.best_row.astype(np.float64)])
        probabilities, tops, rows = comm.rows(columns[None]).transpose(1, 0, 2, 3)
        self.probability, highest = probabilities.sum(axis=0), tops.max(axis=0)
        first = xp.where(tops == highest, rows, np.inf).min(axis=0)
        self.best_row, self._top = first.astype(np.int64), highest.astype(np.float32)

    def _raise(self, state: int, top: Array, row: Array) -> None:
        xp = array_namespace(top)
        is_higher = top > self._top[state]
        self.best_row[state] = xp.where(is_higher, row, self.best_row[state])
        self._top[state] = xp.where(is_higher, top, self._top[state])
