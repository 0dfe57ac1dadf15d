"""A plan fits into its memory and knows what it costs."""

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.grids import make_grid
from orienteer.orientation.point_group import as_point_group
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.plan import count_poses, make_plan


def planned(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "device": "cpu", "n_frames": 10_000, "n_pixels": 4000, "n_rows": 50_000, "edge_voxels": 101,
        "lit_share": 0.02, "largest_count": 40.0, "is_counts": True, "budget_GiB": 1.0,
    }  # fmt: skip
    return make_plan(**(given | changes))


def test_a_plan_fits_its_budget_and_says_so() -> None:
    for budget in (0.05, 1.0, 8.0):
        plan = planned(budget_GiB=budget)
        assert plan.score_bytes <= budget * 2**30
        assert 1 <= plan.batch_frames <= 10_000
    assert planned(budget_GiB=8.0).batch_frames > planned(budget_GiB=0.05).batch_frames


@pytest.mark.parametrize("n_pixels", [16, 4000])
def test_too_little_memory_is_told_with_the_least_that_is_needed(n_pixels: int) -> None:
    told = planned(budget_GiB=1e-5, n_pixels=n_pixels).beyond(1e-5)
    assert "memory_GiB = 1e-05 is too little" in told
    least = float(told.split("Give ")[1].split(" or more")[0])
    assert planned(budget_GiB=least, n_pixels=n_pixels).beyond(least) == ""
    assert planned(budget_GiB=least / 4, n_pixels=n_pixels).beyond(least / 4)
    assert planned(budget_GiB=1.0).beyond(1.0) == planned(budget_GiB=0.0).beyond(0.0) == ""


def test_dark_frames_are_lists_and_bright_ones_arrays() -> None:
    assert planned().layout == "sparse"
    assert planned(lit_share=0.9).layout == "dense"
    assert planned(is_counts=False).layout == "dense"


def test_twice_the_frames_take_about_twice_the_time() -> None:
    once, twice = planned(), planned(n_frames=20_000)
    assert twice.seconds_per_iteration == pytest.approx(2 * once.seconds_per_iteration, rel=0.3)
    assert {name for name, _ in once.describe()} >= {"device", "memory", "orientations"}


def test_frames_beyond_a_cards_memory_come_to_it_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.reconstruction.plan._free_GiB", lambda on_gpu: 1.0)
    few, many = (planned(device="cuda", lit_share=0.5, n_frames=n) for n in (10_000, 1_000_000))
    assert few.frames_on_device
    assert not many.frames_on_device
    assert 2 * 4000 * many.batch_frames < 0.5 * 2**30
    assert many.memory_GiB < 3
    assert dict(many.describe())["frames are kept"] == "in host memory, copied in every iteration"
    # On the CPU the memory of the device is that of the machine.
    assert planned(lit_share=0.5, n_frames=1_000_000).frames_on_device
    assert not planned(frames_in_memory=False).frames_on_device


@pytest.mark.parametrize("group", ["C1", "C2", "D2", "T", "I"])
def test_poses_are_counted_without_making_them(group: str) -> None:
    order = as_point_group(group).order
    for level in (1, 4, 7):
        assert count_poses(level, order) == len(make_grid("600-cell", level, group))


def test_poses_of_groups_that_the_grid_has_not_are_counted_to_a_few_per_cent() -> None:
    for group in ("C3", "C4", "D7", "O"):
        exact = len(make_grid("600-cell", 8, group))
        assert count_poses(8, as_point_group(group).order) == pytest.approx(exact, rel=0.05)


def test_a_grid_that_nobody_can_make_is_refused_before_anything_starts() -> None:
    with pytest.raises(OrienteerError, match="divide the 600-cell 101 times"):
        count_poses(101)


def test_every_model_and_half_has_volumes_of_its_own() -> None:
    one, models, halves = planned(), planned(n_models=3), planned(n_halves=2)
    voxels = 101**3
    # Of all frames a model, and of every half that of now, that of the step before, and sums.
    assert models.memory.volumes - one.memory.volumes == 2 * (12 + 24) * voxels
    assert halves.memory.volumes - one.memory.volumes == (8 + 24) * voxels
    assert halves.memory.compression > models.memory.compression - 2 * 64 * voxels
    assert halves.memory.scores <= one.memory.scores
    assert planned(stored_bytes=10**9).memory.frames - one.memory.frames == 10**9


def held_by(tiny: Any, n_frames: int, **settings: Any) -> tuple[int, Any]:
    """Bytes that a reconstruction holds at most up to the end of an iteration, and its plan."""
    tracemalloc.start()
    try:
        emc = replace(tiny, patterns=tiny.patterns[np.arange(n_frames)]).emc(**settings)
        # Models come one after the other; what is planned is for all of them.
        emc.n_models = emc.settings.models
        emc.models, emc.full = (np.repeat(x, emc.n_models, axis=-4) for x in (emc.models, emc.full))
        emc.table.take_states(emc.n_models)
        emc.enter(len(emc.stages) - 1)
        emc.step()
        return tracemalloc.get_traced_memory()[1], emc.plan
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("n_pixels", "edge_A", "frames", "photons", "settings"),
    [
        (24, 40.0, 200, 300, {"level": 3}),
        (24, 40.0, 100, 300, {"level": 2, "models": 2}),
        (14, 65.0, 1500, 300, {"level": 5}),
        (14, 65.0, 1000, 20000, {"level": 4, "models": 2, "halves": False}),
    ],
    ids=["filter", "filter of two models", "scores", "scores of two models"],
)
def test_the_memory_planned_is_the_memory_held(
    simulated: Any, n_pixels: int, edge_A: float, frames: int, photons: float, settings: dict[str, Any]
) -> None:
    tiny = simulated(random_blobs(200.0, 20, 5), n_pixels, edge_A, frames=frames, photons_per_frame=photons)
    # Another size first: compiled kernels, and tables of a cube, are not what is measured.
    held_by(tiny, 60, diameter_A=150.0, **settings)
    peak, plan = held_by(tiny, frames, **settings)
    assert plan.memory.total == pytest.approx(peak, rel=0.25)
    assert plan.memory_GiB == plan.memory.total / 2**30


@pytest.mark.parametrize("largest_square", [1.0, 1e9])
def test_a_deterministic_plan_rounds_alike_whatever_the_frames_are(largest_square: float) -> None:
    made = planned(device="cuda", largest_square=largest_square, free_GiB=100.0, is_deterministic=True)
    assert made.precision == "two-term"
    assert planned(device="cpu", is_deterministic=True).precision == "single"
