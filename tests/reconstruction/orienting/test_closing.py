"""The end of a run: poses between the points of the grid, and a model of frames that lie there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import compose, inverse
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.model.compression import compress, filter_halves
from orienteer.reconstruction.orienting import closing
from orienteer.reconstruction.orienting.closing import refine_all


@pytest.fixture(scope="module")
def data(simulated: Any, tiny: Any) -> Any:
    return simulated(tiny.particle, 20, 50.0, frames=300, photons_per_frame=2000)


@pytest.fixture(scope="module")
def settled(data: Any) -> Emc:
    """A run that has found the truth on a coarse grid, at its last stage."""
    emc: Emc = data.emc(level=4, refine=False)
    data.take_truth(emc)
    emc.enter(len(emc.stages) - 1)
    for _ in range(5):
        emc.step()
    return emc


def pose_errors_deg(data: Any, emc: Emc) -> Any:
    turned = compose(emc.table.quaternion, inverse(data.aligned(emc, last_shell=12).quaternion))
    return angular_distance_deg(turned, data.patterns.columns["truth_orientation"], flat_ewald=True)


def test_poses_and_model_come_nearer_to_the_truth_than_the_grid_lets_them(data: Any, settled: Emc) -> None:
    def correlation() -> float:
        return float(data.aligned(settled, last_shell=12).shells.correlation[2:16].mean())

    on_grid, before = pose_errors_deg(data, settled), correlation()
    log_likelihood = settled.table.log_likelihood[~settled.sentinel].mean()
    assert refine_all(settled, settled.noise.likelihood(settled.work))
    assert np.median(pose_errors_deg(data, settled)) < 0.8 * np.median(on_grid)
    assert correlation() > before
    assert settled.table.log_likelihood[~settled.sentinel].mean() > log_likelihood + 1


def test_a_model_that_makes_frames_less_likely_is_not_taken(
    settled: Emc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worse(*arguments: Any) -> Any:
        return replace(found := compress(*arguments), models=np.ones_like(found.models))

    monkeypatch.setattr("orienteer.reconstruction.emc.compress", worse)
    models, full = settled.models, settled.full
    assert not refine_all(settled, settled.noise.likelihood(settled.work))
    assert settled.models is models
    assert settled.full is full


def test_a_model_that_is_noisier_is_not_taken_however_likely_it_makes_frames_at_their_best_pose(
    data: Any, settled: Emc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise that both halves do not share, which their correlation shows."""
    draw = np.random.default_rng(2)

    def noisier(solved: Any, *arguments: Any) -> Any:
        for half in solved:
            for m, (values, exposure) in enumerate(half):
                half[m] = (values + draw.normal(0, 2.0, values.shape).astype(values.dtype), exposure)
        return filter_halves(solved, *arguments)

    models, climbs = settled.models, list[bool]()
    climb = closing._refine_parts
    monkeypatch.setattr("orienteer.reconstruction.model.compression.filter_halves", noisier)
    monkeypatch.setattr(
        closing, "_refine_parts", lambda *given, is_near=False: (climbs.append(is_near), climb(*given))
    )
    assert not refine_all(settled, settled.noise.likelihood(settled.work))
    assert settled.models is models
    assert climbs == [False], "poses climb, and nobody climbs again towards models that are not taken"


def test_a_run_ends_with_it_unless_a_limit_has_ended_it(tiny: Any) -> None:
    def poses(**settings: Any) -> Any:
        emc = tiny.emc(symmetry="I", **settings)
        while not emc.finished:
            step = emc.step()
        on_grid = np.abs(emc.table.quaternion @ emc.work.quaternions.T).max(axis=1) > 1 - 1e-9
        return on_grid, step

    refined, step = poses()
    kept, before = poses(refine=False)
    assert kept.all()
    assert refined.mean() < 0.3  # a few lie on the top already
    assert step.iteration == before.iteration
    assert step.log_likelihood > before.log_likelihood
    assert poses(iterations=5)[0].all()


def test_the_evidence_gains_what_frames_have_climbed_and_nothing_by_the_fluence_that_scores_are_of(
    simulated: Any, tiny: Any
) -> None:
    """Grids score a group of frames at its mean fluence, a climb each frame at its own."""
    data = simulated(tiny.particle, 20, 50.0, frames=200, photons_per_frame=3000, fluence_jitter=0.3)
    emc = data.emc(level=4, refine=False, halves=False)
    data.take_truth(emc)
    emc.enter(len(emc.stages) - 1)
    for _ in range(2):
        emc.step()
    assert emc.estimates_fluence
    assert not all(group.is_even for batch in emc.work.batches(0, emc.fluence) for group in batch.groups)
    frames = emc.table.merged & ~emc.sentinel
    evidence, best = emc.table.log_evidence[frames].copy(), emc.table.log_likelihood[frames].copy()
    assert not refine_all(emc, emc.noise.likelihood(emc.work))  # poses climb, and models stay
    gained = emc.table.log_evidence[frames] - evidence
    assert (gained >= 0).all()
    # What the scores differ by is many times what poses can gain within a cell of the grid.
    shift = emc.table.log_likelihood[frames] - best - gained
    assert abs(shift).mean() > 3 * gained.mean()
