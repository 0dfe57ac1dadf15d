"""Lists of responsibilities, blocks of fine rows, and posteriors over them."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation.six_hundred_cell import six_hundred_cell
from orienteer.posterior.blocks import BlockList, select_blocks
from orienteer.posterior.listed import BlockResponsibilities, normalise_blocks
from orienteer.posterior.responsibilities import Responsibilities
from orienteer.posterior.scores import ScoreStore

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def random_lists(n_rows: int, n_frames: int, share: float = 0.05, seed: int = 0) -> Responsibilities:
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n_rows, n_frames)) < share, rng.random((n_rows, n_frames)), 0)
    matrix[:, n_frames // 2] = 0  # a frame that nothing explains
    matrix /= np.maximum(matrix.sum(axis=0), 1e-30)
    frame, row = np.nonzero(matrix.T)
    start = np.concatenate([[0], np.cumsum(np.bincount(frame, minlength=n_frames))])
    return Responsibilities(n_rows, start, row.astype(np.int32), matrix[row, frame].astype(np.float32))


def children(n_rows: int, seed: int = 1) -> NDArray[np.int64]:
    """Between 0 and 17 children of every coarse row."""
    return np.concatenate([[0], np.cumsum(np.random.default_rng(seed).integers(0, 18, n_rows))])


def on(device: Any, lists: Responsibilities) -> Responsibilities:
    """The same lists in the memory of a device."""
    parts = (to_device(part, device) for part in (lists.start, lists.row, lists.probability))
    return Responsibilities(lists.n_rows, *parts)


def fine_matrix(found: BlockResponsibilities, n_rows: int) -> NDArray[np.float32]:
    """Probabilities of frames over their blocks as the whole matrix (K, D)."""
    blocks, matrix = found.blocks, np.zeros((n_rows, found.blocks.n_frames), np.float32)
    probability, v = to_numpy(found.probability), 0
    for b in range(len(blocks)):
        rows = to_numpy(blocks.row)[int(blocks.block_start[b]) : int(blocks.block_start[b + 1])]
        for pair in range(int(blocks.pair_start[b]), int(blocks.pair_start[b + 1])):
            matrix[rows, int(blocks.frame[pair])] = probability[v : v + len(rows)]
            v += len(rows)
    return matrix


def listed_values(matrix: NDArray[np.float32], blocks: BlockList) -> NDArray[np.float32]:
    """The values of a (K, D) matrix pair after pair, as the words say."""
    values = []
    for b in range(len(blocks)):
        rows = to_numpy(blocks.row)[int(blocks.block_start[b]) : int(blocks.block_start[b + 1])]
        for pair in range(int(blocks.pair_start[b]), int(blocks.pair_start[b + 1])):
            values.append(matrix[rows, int(blocks.frame[pair])])
    return np.concatenate(values)


def test_lists_that_do_not_fit_together_are_refused() -> None:
    row, probability = np.zeros(3, np.int32), np.ones(3, np.float32)
    with pytest.raises(OrienteerError, match="one length"):
        Responsibilities(5, np.array([0, 3]), row, probability[:2])
    with pytest.raises(OrienteerError, match="must begin at 0"):
        Responsibilities(5, np.array([0, 2]), row, probability)
    with pytest.raises(OrienteerError, match="starts of children"):
        select_blocks(Responsibilities(5, np.array([0, 3]), row, probability), np.arange(5))


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_are_the_children_of_the_rows_each_frame_keeps(device: Any, matrix_of: Any) -> None:
    lists, child_start = random_lists(80, 30, share=0.04), children(80)
    blocks = select_blocks(on(device, lists), child_start)
    found = set()
    for b in range(len(blocks)):
        coarse = int(blocks.coarse_row[b])
        rows = to_numpy(blocks.row)[int(blocks.block_start[b]) : int(blocks.block_start[b + 1])]
        np.testing.assert_array_equal(rows, np.arange(child_start[coarse], child_start[coarse + 1]))
        for pair in range(int(blocks.pair_start[b]), int(blocks.pair_start[b + 1])):
            found.add((coarse, int(blocks.frame[pair])))
    rows, frames = np.nonzero(matrix_of(lists))
    wide = np.diff(child_start)[rows] > 0
    assert found == set(zip(rows[wide].tolist(), frames[wide].tolist(), strict=True))
    assert len(found) == blocks.n_pairs
    assert blocks.n_values == np.diff(child_start)[rows].sum()


def test_tiles_of_blocks_cover_the_list() -> None:
    blocks = select_blocks(random_lists(80, 30), children(80))
    matrix = np.random.default_rng(3).random((2000, 30)).astype(np.float32)
    whole = listed_values(matrix, blocks)
    n_values = 0
    for first in range(0, len(blocks), 7):
        tile = blocks.tile(first, min(first + 7, len(blocks)))
        np.testing.assert_array_equal(tile.row, blocks.row[blocks.block_start[first] :][: tile.n_rows])
        np.testing.assert_array_equal(listed_values(matrix, tile), whole[n_values : n_values + tile.n_values])
        n_values += tile.n_values
        # Sizes are known in host memory, without a look at the device.
        assert tile.n_values == tile.value_start[-1]
        for known, starts in zip(tile.on_host, (tile.block_start, tile.pair_start), strict=True):
            np.testing.assert_array_equal(known, starts)
    assert n_values == blocks.n_values


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kept_mass", [0.9, 0.999, 1.0])
def test_listed_posteriors_are_whole_ones_with_the_other_rows_impossible(
    device: Any, kept_mass: float, matrix_of: Any
) -> None:
    rng = np.random.default_rng(4)
    lists, child_start = random_lists(80, 50, share=0.1), children(80)
    n_fine = int(child_start[-1])
    blocks = select_blocks(on(device, lists), child_start)
    log_prior = np.log(rng.dirichlet(np.full(n_fine, 3.0)))
    log_prior[7::50] = -np.inf
    beta = rng.uniform(0.3, 1, 50).astype(np.float32)
    scores = (rng.normal(0, 5, (n_fine, 50)) - 700).astype(np.float32)
    scores[3::40, 5] = np.nan
    allowed = np.repeat(matrix_of(lists) > 0, np.diff(child_start), axis=0)
    store = ScoreStore(n_fine, 50, kept_mass=kept_mass)
    store.add(0, np.where(allowed, scores, -np.inf).astype(np.float32), log_prior, beta)
    expected, matrix = store.finish(), store.responsibilities(0, n_fine)

    values = to_device(listed_values(scores, blocks), device)
    found = normalise_blocks(values, blocks, to_device(log_prior, device), to_device(beta, device), kept_mass)
    np.testing.assert_allclose(to_numpy(found.posterior.log_evidence), expected.log_evidence, atol=3e-4)
    np.testing.assert_allclose(to_numpy(found.posterior.perplexity), expected.perplexity, rtol=1e-3)
    np.testing.assert_array_equal(to_numpy(found.posterior.best_row), expected.best_row)
    np.testing.assert_array_equal(to_numpy(found.posterior.best_score), expected.best_score)
    np.testing.assert_allclose(to_numpy(found.posterior.kept_mass), expected.kept_mass, atol=2e-3)
    dense = fine_matrix(found, n_fine)
    both = (matrix > 0) & (dense > 0)
    assert both.sum() > 0.99 * (matrix > 0).sum()  # entries at a threshold may fall to either side
    np.testing.assert_allclose(dense[both], matrix[both], rtol=2e-2)
    np.testing.assert_allclose(dense.sum(axis=0), matrix.sum(axis=0), atol=1e-5)
    np.testing.assert_allclose(to_numpy(found.row_mass()), dense[to_numpy(blocks.row)].sum(axis=1), atol=1e-6)


def test_two_levels_of_a_pose_grid_agree_with_the_whole_fine_grid() -> None:
    coarse = six_hundred_cell(2)
    fine, child_start = coarse.fine(), coarse.child_start
    truth = fine.quaternions[::101]
    # A smooth score, so that the children of what the coarse grid keeps hold the fine posterior.
    scores_of = lambda grid: (40 * (grid.quaternions @ truth.T) ** 2).astype(np.float32)  # noqa: E731
    n_frames = len(truth)
    store = ScoreStore(len(coarse), n_frames, kept_mass=0.9999)
    store.add(0, scores_of(coarse), coarse.log_weights, 0.5)
    blocks = select_blocks(store.kept(), child_start)
    found = normalise_blocks(listed_values(scores_of(fine), blocks), blocks, fine.log_weights, 1.0)
    whole = ScoreStore(len(fine), n_frames)
    whole.add(0, scores_of(fine), fine.log_weights, 1.0)
    np.testing.assert_allclose(found.posterior.log_evidence, whole.finish().log_evidence, atol=0.02)
    np.testing.assert_array_equal(found.posterior.best_row, np.arange(len(fine))[::101])
    np.testing.assert_allclose(fine_matrix(found, len(fine)), whole.responsibilities(0, len(fine)), atol=2e-3)


def test_no_blocks_give_an_empty_posterior() -> None:
    nothing = Responsibilities(4, np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    blocks = select_blocks(nothing, np.arange(0, 20, 4))
    found = normalise_blocks(np.zeros(0, np.float32), blocks, np.full(16, -math.log(16)), 1.0)
    np.testing.assert_array_equal(found.posterior.log_evidence, -np.inf)
    assert (len(found.probability), len(blocks)) == (0, 0)
    with pytest.raises(OrienteerError, match="0 values"):
        normalise_blocks(np.zeros(2, np.float32), blocks, np.zeros(16), 1.0)
