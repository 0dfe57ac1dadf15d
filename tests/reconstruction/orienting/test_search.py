"""The search of a stage in a reconstruction: two passes find what the whole grid finds, with less work."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.search import N_SAMPLE, TwoPasses, WholeGrid, choose_search

LEVEL = 8


def stage_of(data: Any, level: int, in_two_passes: bool, **settings: Any) -> Emc:
    """A reconstruction of two stages, the second of which is searched as told."""
    emc = data.emc(**settings)
    first, last = emc.stages[0], emc.stages[-1]
    emc.stages = [replace(first, level=4), replace(last, level=level, in_two_passes=in_two_passes)]
    emc.course.n_stages = 2
    emc.begin_start(0)
    return emc


@pytest.fixture(scope="module")
def data(simulated: Any, tiny: Any) -> Any:
    return simulated(tiny.particle, 20, 50.0, frames=300, photons_per_frame=1000)


@pytest.fixture(scope="module")
def known(data: Any) -> dict[str, Any]:
    """What the first stage has taught, by iterations that both ways of search go on from."""
    emc = stage_of(data, LEVEL, False)
    data.take_truth(emc)
    for _ in range(3):
        emc.step()
    return emc.state()


def enter_last(data: Any, known: dict[str, Any], in_two_passes: bool) -> Emc:
    emc = stage_of(data, LEVEL, in_two_passes)
    emc.take_learnt(known)
    emc.half_correlation = known["half_correlation"]
    emc.enter(1)
    return emc


def test_two_passes_give_the_likelihood_of_the_whole_grid(data: Any, known: dict[str, Any]) -> None:
    steps, found = [], []
    for in_two_passes in (True, False):
        emc = enter_last(data, known, in_two_passes)
        steps.append([emc.step() for _ in range(2)][-1])
        found.append(emc)
    two, one = steps
    assert (two.grid_level, two.n_rotations) == (one.grid_level, one.n_rotations) == (LEVEL, 25680)
    # Less than counts as a gain of an iteration.
    assert two.log_likelihood == pytest.approx(one.log_likelihood, abs=0.05)
    assert two.half_correlation == pytest.approx(one.half_correlation, abs=0.005)
    assert two.perplexity == pytest.approx(one.perplexity, rel=0.15)
    same = np.sum(found[0].table.quaternion * found[1].table.quaternion, axis=1) ** 2 > 1 - 1e-9
    assert same[~found[0].sentinel].mean() > 0.85
    confidence = [np.median(emc.table.confidence[~emc.sentinel]) for emc in found]
    assert confidence[0] == pytest.approx(confidence[1], rel=0.15)


def search_of(emc: Emc) -> Any:
    work = emc.work
    likelihood = emc.noise.likelihood(work)
    expander = Expander(emc.models[1], work.points, work.junk(emc.junk))
    beta = emc.annealing.inverse_temperature(work, likelihood, emc.models, emc.fluence, emc.table.weight)
    sample = work.sample(0, emc.fluence, N_SAMPLE)
    return choose_search(work, likelihood, expander, sample, beta, 0.999), likelihood, expander


def test_a_frame_is_scored_on_an_eighth_of_the_poses_and_few_more(data: Any, known: dict[str, Any]) -> None:
    emc = enter_last(data, known, True)
    search, likelihood, expander = search_of(emc)
    assert isinstance(search, TwoPasses)
    batch = next(iter(emc.work.batches(0, emc.fluence)))
    fine = search.grid
    blocks = fine.blocks(fine.coarse(likelihood, expander, batch, search.beta))
    met = len(fine.parents) + blocks.n_values / len(batch)
    assert met < len(fine.rows) / 5


def test_faint_frames_meet_the_whole_fine_grid(simulated: Any, tiny: Any) -> None:
    faint = simulated(tiny.particle, 14, 65.0, frames=60, photons_per_frame=10)
    emc = stage_of(faint, 4, True, models=2, junk_classes=1)
    emc.enter(1)
    search, likelihood, expander = search_of(emc)
    assert isinstance(search, WholeGrid)
    assert search.grid is emc.work.fine
    deposit = emc.new_deposit(emc.work, 0)
    batch = next(iter(emc.work.batches(0, emc.fluence)))
    search.step(likelihood, expander, batch, deposit, emc.work.pixel_weights)
    # Masses are counted for the coarse rows, and for the junk.
    assert len(deposit.row_mass) == len(emc.work.rows)
    assert deposit.row_mass.sum() == pytest.approx(len(batch), rel=1e-5)
    assert deposit.row_mass[-1] > 0


def test_rejected_frames_are_not_merged_in_two_passes(
    data: Any, known: dict[str, Any], merge_whole_frames: Any
) -> None:
    emc = enter_last(data, known, True)
    likelihood = emc.noise.likelihood(emc.work)
    beta = emc.annealing.inverse_temperature(emc.work, likelihood, emc.models, emc.fluence, emc.table.weight)
    emc.table.weight = np.where(np.arange(len(emc.half)) % 3 == 0, 0.0, 1.0)
    merge_whole_frames(emc)
    photons = emc.orient_and_merge(0, likelihood, beta).sums[0].finish()[..., 0].sum()
    counted = (emc.half == 0) & ~emc.sentinel & (emc.table.weight > 0)
    assert photons == pytest.approx(np.array(data.patterns.dense())[counted].sum(), rel=1e-4)


EVERYTHING: dict[str, Any] = {
    "symmetry": "D2", "models": 2, "junk_classes": 1, "fluence": "estimate", "sentinels": 0.2,
}  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"likelihood": "gaussian"}, {"background": "estimate"}])
def test_going_on_in_two_passes_gives_the_same_bits(tiny: Any, changes: dict[str, Any]) -> None:
    emc, other = (stage_of(tiny, 4, True, **(EVERYTHING | changes)) for _ in range(2))
    emc.step()
    emc.enter(1)
    for _ in range(2):
        before = emc.state()
        emc.step()
        other.restore(before)
        other.step()
        one, two = emc.state(), other.state()
        assert all(np.array_equal(one[name], two[name]) for name in one)
        assert all(np.isfinite(value).all() for name, value in one.items() if name.endswith("models"))
