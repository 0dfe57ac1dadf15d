"""The loop of M-TIP with every kind of references: the same assignments, the same volumes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.mtip.mtip import Mtip
from orienteer.mtip.references.keeper import Reading, ReferenceKeeper
from orienteer.mtip.references.planning import Demand
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting.expander import Expander


def two_steps(source: Any, references: Any, **options: Any) -> Mtip:
    settings = MtipSettings(
        diameter_A=200.0, level=5, sentinels=0.0, phasing=False, references=references, **options
    )
    mtip = Mtip(source, settings, seed=1, device="cpu")
    for _ in range(2):
        mtip.step()
    return mtip


@pytest.mark.parametrize("options", [{}, {"likelihood": "gaussian"}], ids=["sparse", "dense"])
def test_the_loop_gives_the_same_with_every_kind(
    frames_of_blobs: SimpleNamespace, options: dict[str, Any]
) -> None:
    plain = two_steps(frames_of_blobs.source, "recompute", **options)
    scale = np.abs(plain.models).max()
    for kind in ("replicate", "disk", "auto"):
        kept = two_steps(frames_of_blobs.source, kind, **options)
        assert np.abs(kept.models - plain.models).max() < 1e-5 * scale
        assert np.array_equal(kept.table.quaternion, plain.table.quaternion)
        assert np.array_equal(kept.best_model, plain.best_model)
        kept.references.close()


def test_the_keeper_chooses_once_for_a_row_space_and_tells_it_once() -> None:
    problem, truth, _ = made_up(12, 64, 3, "poisson", "cpu", 1, 500.0)
    keeper = ReferenceKeeper("auto")

    def expander(passes: float) -> Expander:
        reading = Reading(passes, 0.0, by_pixel=False)
        return keeper.expander(truth[None], problem._points, None, problem.rows, reading)

    assert type(expander(1.0)) is Expander
    assert keeper.choice is not None
    assert keeper.choice.option.kind == "recompute"
    assert keeper.news() == ""
    keeper.close()
    kept = expander(1e6)
    assert keeper.choice.option.kind == "replicate"
    assert keeper.news() == keeper.choice.why
    assert keeper.news() == ""
    assert "Slices are kept in memory" in keeper.choice.why
    assert expander(1.0).references is kept.references  # type: ignore[attr-defined]


def test_what_does_not_fit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth, _ = made_up(12, 64, 3, "poisson", "cpu", 1, 500.0)
    keeper = ReferenceKeeper("auto")
    nothing = Demand(10, 1 << 20, 1e6, memory_bytes=0.0, disk_bytes=0.0)
    monkeypatch.setattr(keeper, "_demand", lambda *_: nothing)
    keeper.expander(truth[None], problem._points, None, problem.rows, Reading(1e6, 0.0, False))
    assert keeper.choice is not None
    assert keeper.choice.option.kind == "recompute"
    assert "for 0 GiB of room" in keeper.choice.why
