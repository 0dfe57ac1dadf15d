"""Each half is phased with what was given, and otherwise with what its own frames show."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.phase.settings import PhaseSettings
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate import half_phasing, side_by_side
from orienteer.validate.half_phasing import phase_settings_for
from orienteer.validate.halves import begin_halves
from orienteer.validate.result import Validation
from orienteer.validate.side_by_side import SideBySide
from orienteer.validate.validation import validate

SETTINGS = ValidationSettings(sentinels=0.1, replicates=0, random_phases=1)
PHASING = PhaseSettings(starts=2, schedule="10*er", support_volume_A3=1.3e6)


@pytest.fixture
def phased_with(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symmetries with which intensities are phased; the phasing itself is left out."""
    symmetries: list[str] = []

    def phase(_: Any, settings: PhaseSettings, **__: Any) -> Any:
        symmetries.append(settings.symmetry)
        raise OrienteerError("nothing is phased here.")

    monkeypatch.setattr(half_phasing, "phase", phase)
    return symmetries


@pytest.fixture(scope="module")
def free_run(short_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run to which no symmetry was given, with its halves."""
    settings = short_run.settings.model_copy(update={"symmetry": "auto", "iterations": 1})
    run = Run.create(tmp_path_factory.mktemp("free") / "run", short_run.source, settings, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (run, *begin_halves(run, SETTINGS, beside=True).runs):
            list(one.iterate())
    return run


def validated(run: Run, phasing: PhaseSettings = PHASING) -> Validation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return validate(run, SETTINGS, phasing, device="cpu")


def let_runs_find(monkeypatch: pytest.MonkeyPatch, **found: str) -> None:
    """Let each run have found a symmetry, by the name of its folder."""
    monkeypatch.setattr(Run, "group", property(lambda run: PointGroup(found[run.path.name])))


@pytest.mark.parametrize(
    ("whole", "first", "second", "said"),
    [
        ("I", "C1", "C1", "The run of all frames has found the symmetry I, but its halves C1"),
        ("C1", "T", "T", "The run of all frames has found the symmetry C1, but its halves T"),
        ("I", "I", "C1", "The halves have found different symmetries, I and C1"),
        ("I", "I", "I", ""),
    ],
)
def test_each_half_is_phased_with_the_symmetry_that_its_own_frames_show(
    free_run: Run, phased_with: list[str], monkeypatch: pytest.MonkeyPatch,
    whole: str, first: str, second: str, said: str,
) -> None:  # fmt: skip
    let_runs_find(monkeypatch, run=whole, half_1=first, half_2=second)
    found = validated(free_run)
    assert phased_with == [first, second]
    assert [half.symmetry for half in found.halves] == [first, second]
    assert [half["symmetry"] for half in found.describe()["halves"]] == [first, second]
    about = [remark for remark in found.remarks if "found" in remark and "symmetr" in remark]
    assert [remark.startswith(said) for remark in about] == [True] * bool(said)


def test_a_symmetry_given_to_the_phasing_holds_for_both_halves_and_is_told(
    free_run: Run, phased_with: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_runs_find(monkeypatch, run="I", half_1="C1", half_2="C1")
    found = validated(free_run, PHASING.model_copy(update={"symmetry": "D2"}))
    assert phased_with == ["D2", "D2"]
    assert any(remark.startswith("Both halves were given the symmetry D2") for remark in found.remarks)


def test_a_symmetry_given_to_the_run_holds_for_both_halves_and_is_told(
    short_run: Run, phased_with: list[str], tmp_path: Path
) -> None:
    shutil.copytree(short_run.path, tmp_path / "run", ignore=shutil.ignore_patterns("validation"))
    found = validated(Run.open(tmp_path / "run", short_run.source))
    assert phased_with == ["D2", "D2"]
    assert [remark for remark in found.remarks if "symmetr" in remark] == [
        "Both halves were given the symmetry D2 and the diameter 200 A and the volume 1.3e+06 A^3; "
        "what follows from that alone is no evidence."
    ]


def test_processes_are_told_only_what_was_given(
    free_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They begin before any symmetry is found; each takes that of the run that it phases."""
    orders: list[dict[str, Any]] = []

    def started(_: Any, order: dict[str, Any]) -> tuple[None, None]:
        orders.append(json.loads(json.dumps(order)))
        return None, None

    monkeypatch.setattr(side_by_side, "_started", started)
    run = Run.create(tmp_path / "run", free_run.source, free_run.settings, device="cpu")
    halves = begin_halves(run, SETTINGS, "cpu", beside=True)
    SideBySide().start(run, halves, SETTINGS, PHASING, "cpu")
    assert len(orders) == 2
    let_runs_find(monkeypatch, run="I", half_1="T", half_2="C1")
    for order in orders:
        told = PhaseSettings(**order["phasing"])
        assert told == PHASING
        assert [phase_settings_for(one, told).symmetry for one in (run, *halves.runs)] == ["I", "T", "C1"]
