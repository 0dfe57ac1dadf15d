"""The rates of known machines are those of the kept measurements."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.scaling.machines import CORE_RATES, H200_RATES, MACHINES
from orienteer.scaling.prediction import EMC_TRANSFORMS, MTIP_TRANSFORMS, PHASE_TRANSFORMS, predict
from orienteer.scaling.problem import Problem, work_of
from orienteer.scaling.rates import Measured, Rates, fit_rates

RESULTS = Path(__file__).parents[2] / "bench" / "results"


def kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def edge_of(pixels: int) -> int:
    """Voxels along an edge of the model of the benchmark: a curved square detector, a voxel per pixel."""
    side = int(np.sqrt(pixels))
    axis = np.arange(side) - (side - 1) / 2
    square = (axis[:, None] ** 2 + axis**2).max()
    return 2 * int(np.ceil(np.sqrt(square + (square / (4 * side)) ** 2))) + 3


def on_h200(likelihood: str, products: str, runs: list[dict[str, Any]]) -> list[Measured]:
    measured = []
    for run in runs:
        if (run["likelihood"], run["products"]) == (likelihood, products):
            problem = Problem(10_000, run["pixels"], 86_520, edge_of(run["pixels"]), n_halves=1)
            seconds = {name: ms / 1e3 for name, ms in run["breakdown_flat_ms"].items()}
            seconds["other"] = run["milliseconds_flat"] / 1e3 - sum(seconds.values())
            measured.append(Measured(work_of(problem, 10_000, 86_520, 10_000), seconds))
    return measured


def on_cores() -> list[Measured]:
    measured = []
    for run in kept("scaling_cpu")["runs"]:
        lit = run["lit_pixels_per_frame"] / run["pixels"]
        problem = Problem(run["frames"], run["pixels"], run["rotations"], run["edge_voxels"], lit, n_halves=1)
        work = work_of(problem, run["frames"], run["rotations"], 1e9, is_listed=run["layout"] == "sparse")
        seconds = dict(run["breakdown_flat_s"])
        seconds["other"] = max(0.0, run["processor_seconds"] - sum(seconds.values()))
        measured.append(Measured(work, seconds))
    return measured


def assert_same(found: Rates, stated: Rates) -> None:
    assert set(found.costs) == set(stated.costs)
    for stage, kinds in found.costs.items():
        assert dict(stated.costs[stage]) == pytest.approx(kinds, rel=2e-3, abs=1e-18)


def test_the_rates_of_an_h200_are_fitted_to_its_iterations() -> None:
    ceiling = kept("emc_cuda")["ceiling_teraflops"]["float16"] * 1e12 / 2
    found = fit_rates(on_h200("poisson", "half", kept("emc_cuda")["runs"]), ceiling)
    assert_same(found, H200_RATES)
    assert found.error < 0.05


def test_an_iteration_that_no_fit_has_seen_is_foretold() -> None:
    """A million orientations: twelve times as many as those that the costs come from.

    Both were measured before iterations became faster.
    """
    before = kept("emc_cuda")["before"]
    rates = fit_rates(on_h200("gaussian", "split", before["runs"]), before["ceiling_teraflops"] * 1e12 / 4)
    million = kept("emc_cuda")["million"]
    problem = Problem(million["frames"], million["pixels"], million["rotations"], 187, n_halves=1)
    work = work_of(problem, problem.n_frames, problem.n_rows, problem.n_frames)
    assert sum(rates.seconds(work).values()) == pytest.approx(million["seconds"], rel=0.05)


def test_the_rates_of_a_core_are_fitted_to_its_iterations() -> None:
    found = fit_rates(on_cores())
    assert_same(found, CORE_RATES)
    assert found.error < 0.25  # the machine was shared


def test_transforms_cost_what_was_measured() -> None:
    speed = kept("phase_cuda")["speed"]
    per_voxel = speed["seconds_of_the_ffts_alone"] / (100 * 1000 * 2 * 128**3)
    assert H200_RATES.transform_s == pytest.approx(per_voxel, rel=0.02)
    cube = kept("scaling_cpu")["transform"]
    assert CORE_RATES.transform_s == pytest.approx(cube["processor_seconds"] / cube["voxels"] ** 3, rel=0.02)


def test_new_models_cost_as_many_transforms_as_in_real_runs() -> None:
    """Medians over steps; phasing has found its way in the last three."""
    runs = kept("scaling_stages_cpu")["runs"]

    def transforms(step: dict[str, Any], stage: str) -> float:
        voxels = step["halves"] * step["edge_voxels"] ** 3
        return float(step["seconds"][stage] / (voxels * CORE_RATES.transform_s))

    assert np.median([transforms(step, "solve") for step in runs["emc"]]) == pytest.approx(
        EMC_TRANSFORMS, rel=0.03
    )
    assert np.median([transforms(step, "solve") for step in runs["mtip"]]) == pytest.approx(
        MTIP_TRANSFORMS, rel=0.03
    )
    last = [transforms(step, "phase") for step in runs["mtip"][-3:]]
    assert np.median(last) == pytest.approx(PHASE_TRANSFORMS, rel=0.05)
    judged = [
        step["seconds"]["nuisances"] / (step["frames"] * step["pixels"])
        for step in runs["emc"] + runs["mtip"]
    ]
    assert MACHINES["cores"].judge_s == pytest.approx(np.median(judged), rel=0.05)


@pytest.mark.parametrize("name", list(MACHINES))
def test_every_machine_can_be_predicted(name: str) -> None:
    assert 0 < predict(Problem(1000, 1024, 3240, 49), MACHINES[name]).seconds < 60
