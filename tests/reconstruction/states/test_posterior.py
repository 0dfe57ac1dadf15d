"""How likely frames show each state: sums over all poses, against the obvious sum."""

import numpy as np
import pytest

from orienteer.posterior.blocks import select_blocks
from orienteer.posterior.listed import normalise_blocks
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.orienting.listed_rows import owners_of
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.states.posterior import StatePosterior

M, K, D = 3, 40, 7


@pytest.fixture
def rows() -> RowSpace:
    poses = Poses(np.zeros((K, 3, 3), np.float32), np.zeros(K, np.float32))
    return RowSpace(poses, M, np.full(M * K + 1, -np.log(M * K), np.float32), n_junk=1, tile_rows=16)


@pytest.fixture
def scores() -> np.ndarray:
    return np.random.default_rng(4).normal(0, 3, (M * K + 1, D)).astype(np.float32)


def softmax(scores: np.ndarray) -> np.ndarray:
    p = np.exp(scores.astype(np.float64) - scores.max(axis=0))
    return p / p.sum(axis=0)


def stored(scores: np.ndarray, rows: RowSpace) -> ScoreStore:
    store = ScoreStore(len(rows), D, kept_mass=1.0)
    for tile in rows.tiles():
        own = slice(tile.first, tile.last)
        store.add(tile.first, scores[own], rows.log_prior[own], np.float32(1.0))
    return store


def test_a_state_is_as_likely_as_all_its_poses_together(scores: np.ndarray, rows: RowSpace) -> None:
    states = StatePosterior(M, D, np)
    states.add_all(stored(scores, rows), rows)
    wanted = softmax(scores)[: M * K].reshape(M, K, D)
    np.testing.assert_allclose(states.probability, wanted.sum(axis=1), atol=1e-5)
    assert np.array_equal(states.best_row, wanted.argmax(axis=1) + K * np.arange(M)[:, None])
    # What is missing is junk.
    np.testing.assert_allclose(1 - states.probability.sum(axis=0), softmax(scores)[-1], atol=1e-5)


def test_the_likeliest_state_need_not_be_that_of_the_likeliest_pose(rows: RowSpace) -> None:
    scores = np.full((M * K + 1, D), -20.0, np.float32)
    scores[:K] = 0.0  # many good poses
    scores[K] = 1.0  # one that is better than each of them
    states = StatePosterior(M, D, np)
    store = stored(scores, rows)
    states.add_all(store, rows)
    assert (store.finish().best_row == K).all()
    assert (states.probability.argmax(axis=0) == 0).all()


def test_lists_of_rows_give_the_same_as_all_rows(scores: np.ndarray, rows: RowSpace) -> None:
    """Blocks of 4 fine rows below each coarse one; every frame lists all of them."""
    store = ScoreStore(M * K // 4, D, kept_mass=1.0)
    store.add(0, np.zeros((M * K // 4, D), np.float32), np.zeros(M * K // 4, np.float32), np.float32(1))
    blocks = select_blocks(store.kept(), np.arange(0, M * K + 1, 4))
    owners = owners_of(blocks)
    row, frame = blocks.row[owners.row], owners.frame
    found = normalise_blocks(
        scores[row, frame], blocks, np.zeros(M * K, np.float32), np.float32(1.0), kept_mass=1.0
    )
    states = StatePosterior(M, D, np)
    states.add_listed(blocks, found.probability, K)
    wanted = softmax(scores[: M * K]).reshape(M, K, D)
    np.testing.assert_allclose(states.probability, wanted.sum(axis=1), atol=1e-5)
    assert np.array_equal(states.best_row, wanted.argmax(axis=1) + K * np.arange(M)[:, None])
