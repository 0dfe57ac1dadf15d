"""Slices from references, against those that are made on the fly; and what is scored with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.mtip.matching import match
from orienteer.mtip.references.expander import ReferenceExpander, tiling_of
from orienteer.mtip.references.opening import open_references
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.rows import RowSpace

KINDS = ["recompute", "replicate", "disk"]


def expanders(problem: Any, truth: Any, kind: Any, rows: RowSpace, folder: Path, by_pixel: bool) -> Any:
    models = np.stack([truth, truth[::-1]])[: rows.n_models]
    junk = np.ones((rows.n_junk, len(problem._points)), dtype=np.float32) if rows.n_junk else None
    references = open_references(kind, tiling_of(rows, len(problem._points), by_pixel), folder=folder)
    plain = Expander(models, problem._points, junk)
    return plain, ReferenceExpander(models, problem._points, junk, references=references, space=rows)


def row_space(problem: Any, n_models: int, n_junk: int, tile_rows: int) -> RowSpace:
    poses = problem.rows.poses
    n_rows = n_models * len(poses) + n_junk
    return RowSpace(poses, n_models, np.zeros(n_rows, dtype=np.float32), n_junk, tile_rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_pixel", [False, True])
def test_in_order_or_not_slices_are_the_same_bits(kind: Any, by_pixel: bool, tmp_path: Path) -> None:
    problem, truth, _ = made_up(12, 64, 2, "poisson", "cpu", 1, 500.0)
    rows = row_space(problem, 2, 1, 50)
    plain, kept = expanders(problem, truth, kind, rows, tmp_path, by_pixel)
    tiles = list(kept.tiles(rows))
    assert sorted(tile.first for tile in tiles) == [tile.first for tile in rows.tiles()]
    for order in (tiles, tiles[::-1], tiles[3:] + tiles[:3]):
        kept.tiles(rows)
        for tile in order:
            for layout in (by_pixel, not by_pixel):
                assert np.array_equal(kept.slices(rows, tile, layout), plain.slices(rows, tile, layout))
    kept.references.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("likelihood", ["poisson", "gaussian"])
def test_frames_find_the_same_rows_and_posteriors(kind: Any, likelihood: Any, tmp_path: Path) -> None:
    problem, truth, _ = made_up(12, 64, 2, likelihood, "cpu", 1, 500.0)
    batch = problem._batch(problem._prepared[0])
    rows = row_space(problem, 2, 0, 100)
    plain, kept = expanders(problem, truth, kind, rows, tmp_path, batch.by_pixel)
    found, expected = (match(problem.likelihood, expander, rows, batch) for expander in (kept, plain))
    assert np.array_equal(found.row, expected.row)
    assert np.allclose(found.score, expected.score, rtol=1e-5)
    posteriors = []
    for expander in (kept, plain):
        store = ScoreStore(len(rows), len(batch), "cpu")
        posteriors.append(expect(problem.likelihood, expander, rows, batch, np.float32(1.0), store))
    assert np.array_equal(posteriors[0].best_row, posteriors[1].best_row)
    assert np.allclose(posteriors[0].log_evidence, posteriors[1].log_evidence, rtol=1e-5)
    kept.references.close()


def test_rows_that_are_not_kept_are_made(tmp_path: Path) -> None:
    problem, truth, _ = made_up(12, 64, 2, "poisson", "cpu", 1, 500.0)
    plain, kept = expanders(problem, truth, "replicate", row_space(problem, 1, 0, 50), tmp_path, False)
    others = row_space(problem, 1, 0, 70)
    for tile in kept.tiles(others):
        assert np.array_equal(kept.slices(others, tile, False), plain.slices(others, tile, False))


def test_of_equal_rows_the_first_is_found_in_whatever_order_tiles_come() -> None:
    problem, truth, _ = made_up(12, 64, 2, "poisson", "cpu", 1, 500.0)
    batch = problem._batch(problem._prepared[0])
    rows = row_space(problem, 2, 0, 100)
    expander = Expander(np.stack([truth, truth]), problem._points)

    class Backwards(Expander):
        def tiles(self, rows: RowSpace) -> Any:
            return list(rows.tiles())[::-1]

    backwards = Backwards(expander.models, problem._points)
    forth, back = (match(problem.likelihood, each, rows, batch) for each in (expander, backwards))
    assert np.array_equal(forth.row, back.row)
    assert (back.row < len(rows.poses)).all()
