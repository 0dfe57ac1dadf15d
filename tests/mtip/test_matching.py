"""Streamed matching against the posterior of the engine, and against the poses that made the frames."""

from typing import Any

import numpy as np
import pytest

from orienteer.mtip.matching import match
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.rows import RowSpace


@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
def test_the_match_is_the_likeliest_row_of_the_posterior(kind: Any) -> None:
    problem, truth, _ = made_up(12, 64, 2, kind, "cpu", 1, 500.0)
    batch, expander = problem._batch(problem._prepared[0]), Expander(truth[None], problem._points)
    flat = problem.rows.log_prior * 0
    for tile_rows in (7, 100):
        rows = RowSpace(problem.rows.poses, 1, flat, tile_rows=tile_rows)
        found = match(problem.likelihood, expander, rows, batch)
        store = ScoreStore(len(rows), len(batch), "cpu")
        posterior = expect(problem.likelihood, expander, rows, batch, np.float32(1.0), store)
        assert np.array_equal(found.row, posterior.best_row)
        assert np.allclose(found.score, posterior.best_score, rtol=1e-6)
