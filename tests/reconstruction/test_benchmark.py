"""Timing an iteration: parts add up, and the iteration that is timed is a right one."""

import numba
import numpy as np

from orienteer.reconstruction.benchmark import made_up, time_iterations
from orienteer.reconstruction.stopwatch import Stopwatch, part


def test_parts_of_the_time_add_up_to_the_whole() -> None:
    result = time_iterations(frames=60, pixels=400, rotations_n=2, device="cpu", repeats=2, photons=40)
    for state in ("flat", "sharp"):
        own = result[state]
        assert set(own["breakdown"]) >= {"expand", "score", "posterior", "merge", "insert", "compress"}
        assert 0.3 * own["processor_seconds"] < sum(own["breakdown"].values()) <= own["processor_seconds"]
    assert result["seconds"] == result["flat"]["seconds"]
    assert result["flat"]["perplexity"] > 0.5 * result["rotations"]
    assert result["sharp"]["perplexity"] < 2
    assert result["share_of_ceiling"] > 0


def test_an_iteration_from_the_true_model_stays_there_for_any_number_of_threads() -> None:
    problem, truth, _ = made_up(1500, 400, 4, "poisson", "cpu", seed=2, photons=2000.0)
    before = numba.get_num_threads()
    models = []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            problem.fluence = np.ones(1500)
            models.append(problem.iterate(truth, 1.0)[0])
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(models[0], models[1])
    n = len(truth)
    axis = np.arange(n) - n // 2
    radius = np.sqrt(sum(np.square(a) for a in np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)))
    seen = (radius > 2) & (radius < 8)
    assert np.corrcoef(models[0][seen], truth[seen])[0, 1] > 0.9


def test_nothing_is_noted_without_a_stopwatch() -> None:
    with part("alone"):
        pass
    with Stopwatch() as watch, part("seen"):
        pass
    assert list(watch.seconds()) == ["seen"]
