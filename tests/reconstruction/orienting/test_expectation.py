"""Expectation: which rank has which tiles of rows, and in which order, changes no bit of a posterior."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.compute.arrays import to_numpy
from orienteer.compute.ranks.comm import SERIAL, Serial
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect


class OneOfTwo(Serial):
    """The rank of two that takes all tiles, the last one first: the other is asleep."""

    size = 2

    def claimed(self, items):
        return iter(items[::-1])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
@pytest.mark.parametrize("beta", [1e-4, 0.3])  # on a GPU one float16 term is enough for the first
def test_ranks_that_share_out_rows_have_the_posterior_of_one(device, kind, beta) -> None:
    problem, truth, _ = made_up(200, 400, 3, kind, device, 1, 5000.0)
    batch, n_rows = problem._batch(problem._prepared[0]), len(problem.rows)
    rows = replace(problem.rows, tile_rows=300)
    results = []
    for comm in (SERIAL, OneOfTwo()):
        expander = Expander(truth[None], problem._points)
        store = ScoreStore(n_rows, len(batch), device, comm=comm)
        posterior = expect(problem.likelihood, expander, rows, batch, beta, store)
        results.append([store.responsibilities(0, n_rows), posterior.best_row, posterior.best_score])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))
