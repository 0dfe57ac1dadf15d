"""A plan fits into its memory and knows what it costs."""

from typing import Any

import pytest

from orienteer.reconstruction.plan import make_plan


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
