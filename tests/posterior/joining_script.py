"""Ranks share out the rows of the same frames; every posterior must be that of one rank alone, bit by bit."""

from dataclasses import fields

import numpy as np

from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.compute.ranks.world import world
from orienteer.posterior.blocks import select_blocks
from orienteer.posterior.grouping import owner_of
from orienteer.posterior.joining import join_lists
from orienteer.posterior.listed import BlockResponsibilities, normalise_blocks
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.scores import ScoreStore

ROWS, FRAMES, TILE, CHILDREN = 700, 90, 64, 5
RNG = np.random.default_rng(5)
SCORES = (RNG.normal(0, 6, (ROWS, FRAMES)) - 500).astype(np.float32)
SCORES[:, 3] = -500  # all rows as good
SCORES[11, 7] = SCORES[650, 7] = SCORES[:, 7].max() + 1  # two best rows, far apart
LOG_PRIOR = np.full(ROWS, -np.log(ROWS), dtype=np.float32)
LOG_PRIOR[100:110] = -np.inf
BETA = RNG.uniform(0.2, 1, FRAMES).astype(np.float32)
FINE = (np.repeat(SCORES, CHILDREN, axis=0) + RNG.normal(0, 1, (ROWS * CHILDREN, FRAMES))).astype(np.float32)
FINE_PRIOR = np.repeat(LOG_PRIOR, CHILDREN) - np.log(CHILDREN)


def filled(comm: Comm) -> ScoreStore:
    store = ScoreStore(ROWS, FRAMES, "cpu", 0.99, comm)
    store.refer(SCORES[0], BETA)
    for first in comm.claimed(range(0, ROWS, TILE)):
        part = slice(first, min(first + TILE, ROWS))
        store.add(first, SCORES[part], LOG_PRIOR[part], BETA)
    return store


def fine(comm: Comm, store: ScoreStore) -> BlockResponsibilities:
    blocks = select_blocks(store.kept(), np.arange(ROWS + 1) * CHILDREN)
    pairs = zip(blocks.block_start[blocks.pair_block], blocks.block_start[blocks.pair_block + 1], strict=True)
    rows = [np.arange(first, last) for first, last in pairs]
    row = blocks.row[np.concatenate([np.zeros(0, dtype=np.int64), *rows])]
    values = FINE[row, blocks.frame[owner_of(blocks.value_start, blocks.n_values)]]
    return normalise_blocks(values, blocks, FINE_PRIOR, BETA, 0.99, comm)


def assert_same(found: Posterior, expected: Posterior) -> None:
    for name in (field.name for field in fields(Posterior)):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def main() -> None:
    comm = world()
    alone, shared = filled(SERIAL), filled(comm)
    assert_same(shared.finish(), alone.finish())
    np.testing.assert_array_equal(comm.sum(shared.row_mass()), alone.row_mass())
    lists, expected = join_lists(comm, shared.kept()), alone.kept()
    assert (lists.start == expected.start).all()
    assert (lists.row == expected.row).all()
    assert (lists.probability == expected.probability).all()
    one, some = fine(SERIAL, alone), fine(comm, shared)
    assert_same(some.posterior, one.posterior)
    mass = np.zeros((2, ROWS * CHILDREN))
    for whole, part in zip(mass, (one, some), strict=True):
        whole[part.blocks.row] = part.row_mass()
    np.testing.assert_array_equal(comm.sum(mass[1]), mass[0])
    if comm.is_first:
        print("fine")


if __name__ == "__main__":
    main()
