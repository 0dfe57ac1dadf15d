"""The loop of M-TIP with every kind of references: the same assignments, the same volumes."""

import os
from collections.abc import Callable
from pathlib import Path
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
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

SCRIPT = Path(__file__).parents[2] / "reconstruction" / "ranks" / "reconstruction_script.py"


def two_steps(source: Any, references: Any) -> Mtip:
    settings = MtipSettings(
        diameter_A=200.0, level=4, sentinels=0.0, phasing=False, tolerance=1e-5, references=references
    )
    mtip = Mtip(source, settings, seed=1, device="cpu")
    for _ in range(2):
        mtip.step()
    return mtip


def faint(source: Any) -> Any:
    """The same frames with one photon of fifty: so few pixels are lit that frames become lists of photons."""
    told = source.read()
    counts = np.random.default_rng(0).binomial(told.dense().astype(np.int64), 0.02)
    patterns = Patterns(
        counts.astype(np.uint16), told.event_id, {"wavelength_A": told.columns["wavelength_A"]}
    )
    return InMemorySource(patterns, source.detector.frame_shape).with_detector(source.detector)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_loop_gives_the_same_with_every_kind(frames_of_blobs: SimpleNamespace, layout: str) -> None:
    """Operands of photon lists are made from the model at once, where slices are not kept."""
    source = frames_of_blobs.source if layout == "dense" else faint(frames_of_blobs.source)
    plain = two_steps(source, "recompute")
    assert plain.plan.layout == layout
    for kind in ("replicate", "disk", "auto"):
        kept = two_steps(source, kind)
        assert np.linalg.norm(kept.models - plain.models) < 1e-5 * np.linalg.norm(plain.models)
        assert np.array_equal(kept.table.quaternion, plain.table.quaternion)
        assert np.array_equal(kept.best_model, plain.best_model)
        kept.references.close()


def test_what_is_kept_is_given_back_and_had_again(frames_of_blobs: SimpleNamespace) -> None:
    def files() -> int:
        links = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
        return sum("references-" in link for link in links)

    before = files()
    mtip = two_steps(frames_of_blobs.source, "disk")
    assert files() == before + 1
    mtip.close()
    assert files() == before
    mtip.step()
    assert files() == before + 1
    mtip.close()


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
    assert "only 0 GiB is available" in keeper.choice.why


def test_all_ranks_ask_the_same_of_references_where_groups_are_uneven(
    run_ranks: Callable[..., str], tmp_path: Path
) -> None:
    """One rank of three is alone in its group and could read ahead; the others claim tiles."""
    script = tmp_path / "uneven.py"
    script.write_text(_UNEVEN)
    told = [line.split(maxsplit=1)[1] for line in sorted(run_ranks(3, script).splitlines())]
    assert len(told) == 3
    assert len(set(told)) == 1
    assert "in_order=False" in told[0]


_UNEVEN = """
from mpi4py import MPI
from orienteer.mtip.references.keeper import Reading, ReferenceKeeper
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks

comm = MPI.COMM_WORLD
keeper = ReferenceKeeper("auto", Ranks.of(comm))
reading = Reading(1.0 + comm.rank, 1.0, False, in_order=comm.rank == 0)
print(f"{comm.rank} {keeper._demand(Tiling.even(40, 4, 8), reading, on_gpu=False)}\\n", end="", flush=True)
"""


@pytest.mark.parametrize(
    ("n", "mesh", "kind"),
    [
        (2, "2x1", "share"),
        pytest.param(3, "1x3", "distribute", marks=pytest.mark.slow(
            reason="what ranks keep of slices and read in turns is tried every time, in test_window_store.py"
        )),
    ],
)  # fmt: skip
def test_ranks_that_share_slices_come_to_what_one_rank_makes(
    run_ranks: Callable[..., str], tmp_path: Path, n: int, mesh: str, kind: str
) -> None:
    """Three ranks with frames of their own read in turns; two with the same frames claim tiles."""
    found = []
    # A search that ends early ends a step earlier or later for the smallest rounding.
    given = ("level=3", "frames=60", "phasing=False", "refine=False", "tolerance=1e-5")
    for ranks, shape, wish in ((1, "auto", "recompute"), (n, mesh, kind)):
        file = tmp_path / f"{wish}.npz"
        run_ranks(ranks, SCRIPT, "mtip", shape, "dynamic", "2", str(file), *given, f"references={wish!r}")
        found.append(dict(np.load(file)))
    alone, shared = found
    assert np.array_equal(shared["table_quaternion"], alone["table_quaternion"])
    assert np.array_equal(shared["table_model"], alone["table_model"])
    one, several = (np.nan_to_num(each["values"]) for each in found)
    assert np.linalg.norm(several - one) < 1e-5 * np.linalg.norm(one)
