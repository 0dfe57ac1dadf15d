"""BlockList: the blocks of fine orientations that each frame is compared with."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.errors import OrienteerError
from orienteer.posterior.grouping import group_by, owner_of, starts_of
from orienteer.posterior.responsibilities import Responsibilities


@dataclass(frozen=True, eq=False)
class BlockList:
    """B blocks of neighbouring fine rows, the children of one coarse row each, and the frames of each block.

    A pair is a block and one of its frames.  Values of the list (scores, probabilities) are stored pair after
    pair, one for each row of the pair's block.

    n_frames : D.
    coarse_row : (B,) int64, ascending.
    block_start : (B + 1,) int64; block b is rows block_start[b] .. block_start[b + 1] of the chosen rows.
    row : (T,) int64, the fine row of each chosen row, ascending.
    pair_start : (B + 1,) int64; block b has the pairs pair_start[b] .. pair_start[b + 1].
    frame : (n_pairs,) int32, the frame of each pair, ascending within a block.
    known_starts : block_start and pair_start in host memory, if they are known there.
    """

    n_frames: int
    coarse_row: Array
    block_start: Array
    row: Array
    pair_start: Array
    frame: Array
    known_starts: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.coarse_row)

    @property
    def n_rows(self) -> int:
        """Number T of chosen fine rows."""
        return len(self.row)

    @property
    def n_pairs(self) -> int:
        return len(self.frame)

    @property
    def n_values(self) -> int:
        block_start, pair_start = self.on_host
        return int((np.diff(block_start) * np.diff(pair_start)).sum())

    @cached_property
    def on_host(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """block_start and pair_start in host memory: sizes of tiles are known without waiting for the GPU."""
        return self.known_starts or (to_numpy(self.block_start), to_numpy(self.pair_start))

    @cached_property
    def pair_block(self) -> Array:
        """The block of every pair, (n_pairs,) int64."""
        return owner_of(self.pair_start, self.n_pairs)

    @cached_property
    def value_start(self) -> Array:
        """First value of every pair, and the number of all values at the end, (n_pairs + 1,) int64."""
        xp = array_namespace(self.row)
        return starts_of(xp.diff(self.block_start)[self.pair_block])

    @cached_property
    def pairs_of_frames(self) -> tuple[Array, Array]:
        """The pairs of frame d are ``order[start[d]:start[d + 1]]``, rows ascending: (D + 1,), (n_pairs,)."""
        return group_by(self.frame, self.n_frames)

    def tile(self, first: int, last: int) -> "BlockList":
        """Blocks first .. last alone, their rows counted from 0."""
        blocks, pairs = (starts[first : last + 1] for starts in self.on_host)
        first_row, last_row = int(blocks[0]), int(blocks[-1])
        first_pair, last_pair = int(pairs[0]), int(pairs[-1])
        return BlockList(
            self.n_frames,
            self.coarse_row[first:last],
            self.block_start[first : last + 1] - first_row,
            self.row[first_row:last_row],
            self.pair_start[first : last + 1] - first_pair,
            self.frame[first_pair:last_pair],
            (blocks - first_row, pairs - first_pair),
        )


def select_blocks(coarse: Responsibilities, child_start: Array) -> BlockList:
    """The blocks for a fine pass: each frame is paired with the children of the coarse rows it keeps.

    coarse : probabilities over K coarse rows.
    child_start : (K + 1,), first fine row below every coarse row, as ``PoseGrid.child_start``; coarse rows
        may have any number of children, also none.  For several models: their starts one after another.
    """
    xp = array_namespace(coarse.row)
    child_start = xp.asarray(child_start, dtype=np.int64)
    if child_start.shape != (coarse.n_rows + 1,):
        raise OrienteerError(
            f"responsibilities over {coarse.n_rows} rows need {coarse.n_rows + 1} starts of children; "
            f"got {child_start.shape}."
        )
    start, order = group_by(coarse.row, coarse.n_rows)
    width = xp.diff(child_start)
    count = xp.where(width > 0, xp.diff(start), 0)
    chosen = xp.nonzero(count)[0]
    block_start, pair_start = starts_of(width[chosen]), starts_of(count[chosen])
    on_host = to_numpy(block_start), to_numpy(pair_start)
    block = owner_of(block_start, int(on_host[0][-1]))
    row = xp.arange(len(block)) - block_start[block] + child_start[chosen][block]
    pair_block = owner_of(pair_start, int(on_host[1][-1]))
    entry = xp.arange(len(pair_block)) - pair_start[pair_block] + start[chosen][pair_block]
    frame = coarse.frame[order[entry]]
    return BlockList(coarse.n_frames, chosen.astype(np.int64), block_start, row, pair_start, frame, on_host)
