"""Costs of work, fitted to measurements."""

import numpy as np
import pytest

from orienteer.scaling.problem import Problem, Work, work_of
from orienteer.scaling.rates import Measured, Rates, fit_rates


def test_costs_that_made_the_measurements_are_found_again() -> None:
    costs = {
        "expand": {"points": 3e-11},
        "score": {"pairs": 5e-12, "products": 2e-15},
        "posterior": {"pairs": 1e-11},
        "insert": {"points": 4e-11},
        "compress": {"voxels": 2e-10},
        "other": {"once": 2e-3},
    }
    truth = Rates(costs)
    works = [Work(1e9, 4e12, 3e8, 1e6), Work(2e9, 3e13, 1e9, 5e6), Work(5e8, 1e12, 2e8, 3e5)]
    found = fit_rates([Measured(work, truth.seconds(work)) for work in works])
    for stage, kinds in costs.items():
        assert found.costs[stage] == pytest.approx(kinds, rel=1e-5)
    assert found.error < 1e-6


def test_no_product_is_taken_to_be_faster_than_the_device() -> None:
    measured = [Measured(Work(1e9, 1e12, 1.0, 1.0), {"score": 1e-3})]
    assert fit_rates(measured, ceiling_products=1e14).costs["score"]["products"] >= 1e-14


def test_the_error_is_that_of_the_worst_measurement() -> None:
    works = [Work(1e9, 1e12, 1e8, 1e6), Work(1e9, 1e12, 1e8, 1e6)]
    found = fit_rates([Measured(work, {"posterior": s}) for work, s in zip(works, (1.0, 2.0), strict=True)])
    predicted = found.seconds(works[0])["posterior"]
    assert 1.0 < predicted < 2.0
    assert found.error == pytest.approx(max(predicted - 1, 1 - predicted / 2), rel=1e-6)


def test_work_is_counted_as_a_loop_would_count_it() -> None:
    """Beside the formula: go through halves, batches, rows and pixels one by one."""
    problem = Problem(n_frames=14, n_pixels=5, n_poses=3, edge_voxels=4, n_models=2, n_halves=2)
    pairs = points = 0
    for half in (range(7), range(7)):
        for batch in np.array_split(np.asarray(half), 7 // 7):
            for _ in range(problem.n_rows):
                points += problem.n_pixels
                pairs += len(batch)
    found = work_of(problem, 14, problem.n_rows, batch_frames=7)
    assert (found.pairs, found.points) == (pairs, points)
    assert found.products == pairs * 5
    assert found.voxels == 2 * 2 * 4**3


def test_lists_of_photons_cost_what_is_lit_and_more_batches_more_slices() -> None:
    problem = Problem(1000, 400, 50, 10, lit_share=0.1)
    dense, listed = (work_of(problem, 1000, 50, 500, is_listed=listed) for listed in (False, True))
    assert listed.products == pytest.approx(0.1 * dense.products)
    assert work_of(problem, 1000, 50, 100).points == 5 * dense.points
