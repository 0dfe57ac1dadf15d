"""The density of the run is compared with those of its halves: a claim does not cover another density."""

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.cli.validate import in_rows
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.densities import PhasedHalves, beside_the_run
from orienteer.validate.density_agreement import DensityAgreement, words_of_density
from orienteer.validate.half_phasing import phase_run
from orienteer.validate.identity import identity_of, outdated
from orienteer.validate.intensities import IntensityAgreement
from orienteer.validate.remarks import COARSER
from orienteer.validate.result import HalfSummary, Validation, read_validation
from orienteer.validate.states import StateAgreement
from orienteer.validate.validation import validate
from orienteer.volume.opening import open_volume, write_volume
from orienteer.volume.volume import Volume

N, VOXEL_A, EDGE_INV_A = 24, 5.0, 0.095
UNTURNED = np.array([1.0, 0, 0, 0])
PHASING = PhaseSettings(starts=4, schedule="150*raar(0.87) 50*er", support_volume_A3=1.3e6)
SETTINGS = ValidationSettings(sentinels=0.1, replicates=0, random_phases=1)


def body(width: float = 1.2) -> np.ndarray:
    axis = np.arange(N) - N // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    places = [((4, 0, 1), 1.0), ((0, 4, -2), 0.8), ((-2, -2, 4), 1.2), ((-4, 2, -3), 0.9), ((2, -4, -3), 0.7)]
    return sum(
        w * np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / width**2) for (a, b, c), w in places
    )


def noise(seed: int, strength: float) -> np.ndarray:
    return strength * np.random.default_rng(seed).normal(size=(N, N, N))


def phased(values: np.ndarray, voxel_A: float = VOXEL_A, edge_A: float = 0.0) -> Any:
    """A density like one that was phased in the frame of its intensity."""
    support = body(5.0) > 0.02
    return SimpleNamespace(
        density=Volume(values * support, voxel_A), support=Volume(support.astype(float), voxel_A),
        edge_A=edge_A or None, settings={"symmetry": "C1"},
    )  # fmt: skip


def coarse(values: np.ndarray, to_A: float) -> np.ndarray:
    """The values with another sign of every wave beyond a resolution, as in a wrong density."""
    q = np.fft.fftfreq(N, VOXEL_A)
    beyond = np.sqrt(q[:, None, None] ** 2 + q[:, None] ** 2 + q**2) > 1 / to_A
    transform = np.fft.fftn(values)
    return np.asarray(np.fft.ifftn(np.where(beyond, -transform, transform)).real)


def intensities(reach_inv_A: float = EDGE_INV_A) -> IntensityAgreement:
    q = np.arange(12) / 120
    return IntensityAgreement(UNTURNED, q, np.where(q <= reach_inv_A, 0.95, 0.0), 200.0)


def validation(halves: PhasedHalves, of_run: IntensityAgreement | None = None) -> Validation:
    summaries = tuple(HalfSummary(f"half_{n}", n, n, 100, 10, "done", 200.0) for n in (1, 2))
    maps = halves.maps()
    return Validation("id", 3, summaries, maps, intensities(), of_run or intensities())  # type: ignore[arg-type]


def halves_of(one: np.ndarray, other: np.ndarray) -> PhasedHalves:
    both = {1: phased(one), 2: phased(other)}
    return PhasedHalves(0, both, intensities(), (intensities(), intensities()), EDGE_INV_A)


def compared(whole: Any, halves: PhasedHalves) -> Validation:
    return beside_the_run(validation(halves), {0: whole}, [halves])


def test_a_density_that_is_that_of_its_halves_is_covered_by_the_claim() -> None:
    halves = halves_of(body() + noise(1, 0.02), body() + noise(2, 0.02))
    found = compared(phased(body() + noise(3, 0.02)), halves)
    assert found.density is not None
    assert found.density.reaches_edge
    assert found.density_agrees_to_A == pytest.approx(found.resolution_A, rel=0.05)
    assert found.doubts == []
    assert found.statement == replace(found, density=None).statement
    assert found.describe()["density"]["verdict"] == "holds"


@pytest.mark.parametrize(("strength", "right_to_A"), [(0.02, 24.0), (0.1, 40.0)])
def test_a_wrong_density_of_the_run_is_told_with_the_claim_and_what_to_do(
    strength: float, right_to_A: float
) -> None:
    halves = halves_of(body() + noise(1, strength), body() + noise(2, strength))
    found = compared(phased(coarse(body() + noise(3, strength), right_to_A)), halves)
    assert found.resolution_A is not None
    assert found.resolution_A < 14
    assert 0.8 * right_to_A < (found.density_agrees_to_A or 0) < 1.4 * right_to_A
    (said,) = found.doubts
    assert said == (
        "The claim does not hold for the density of the run, which agrees with those of its halves only to "
        f"{found.density_agrees_to_A:.3g} A: phase the run again (phase --restart, with another --seed or "
        "more --starts), then validate it again."
    )
    assert found.statement == f"{replace(found, density=None).statement} {said}"
    rows = dict(in_rows(found, 1.0))
    assert rows["the density of the run agrees with theirs to"] == f"{found.density_agrees_to_A:.3g} A (0.5)"
    told = found.describe()
    assert told["doubts"] == [said]
    assert told["density"]["agrees_to_A"] == found.density_agrees_to_A
    assert told["density"]["verdict"] == "does not hold"
    assert len(told["density"]["q_inv_A"]) == len(told["density"]["correlation"])


def test_a_density_that_is_better_than_those_of_its_halves_is_not_accused() -> None:
    """Phasing of noisier intensities is worse; no half then shows what the run does beyond its own noise."""
    halves = halves_of(body() + noise(1, 0.25), body() + noise(2, 0.25))
    for seed in range(3, 6):
        found = compared(phased(body() + noise(seed, 0.15)), halves)
        assert found.resolution_A is not None
        assert found.density_agrees_to_A is not None
        assert found.density_agrees_to_A > found.resolution_A * COARSER  # the claim itself is by 0.143
        assert found.doubts == []


def test_one_half_whose_phasing_is_wrong_does_not_count_against_the_run() -> None:
    right = body() + noise(1, 0.02)
    for one, other, half in ((right, coarse(body(), 24.0), 1), (coarse(body(), 24.0), right, 2)):
        found = compared(phased(body() + noise(3, 0.02)), halves_of(one, other))
        assert found.density is not None
        assert found.density.half == half
        assert found.density.reaches_edge
        assert found.doubts == []


def test_a_density_that_was_phased_to_less_is_called_so_and_not_wrong() -> None:
    halves = halves_of(body() + noise(1, 0.02), body() + noise(2, 0.02))
    found = compared(phased(body(), edge_A=20.0), halves)
    (said,) = found.doubts
    assert said.startswith("The claim holds for the density of the run only to ")
    assert said.endswith(" A, where that ends.")
    assert found.describe()["density"]["verdict"] == "holds to its end"


MAPS: Any = SimpleNamespace(agrees_to_A=lambda _: 50.0)


@pytest.mark.parametrize(
    ("agrees_to_A", "claim_A", "whole_A", "is_told"),
    [
        (57.0, 50.0, 50.0, False),  # hardly coarser
        (58.0, 50.0, 50.0, True),
        (None, 50.0, 50.0, True),
        (None, 50.0, None, False),  # the intensity of the run is another already, which is told
        (80.0, 50.0, 80.0, False),  # the intensity agrees no further
        (None, None, 50.0, False),  # there is no claim
    ],
)
def test_only_what_the_density_adds_to_the_doubt_is_told(
    agrees_to_A: float | None, claim_A: float | None, whole_A: float | None, is_told: bool
) -> None:
    density = DensityAgreement(1, np.arange(3) / 100, np.ones(3), agrees_to_A, False)
    said = words_of_density(density, MAPS, claim_A, whole_A)
    assert bool(said) == is_told
    assert ("those of its halves nowhere" in said) == (is_told and agrees_to_A is None)
    assert not words_of_density(None, MAPS, claim_A, whole_A)
    is_known = claim_A is not None and whole_A is not None
    assert density.verdict(MAPS, claim_A, whole_A) == (
        "does not hold" if is_told else "holds" if is_known else None
    )


def test_each_state_has_its_own_density() -> None:
    right, wrong = body() + noise(1, 0.02), coarse(body(), 24.0)
    halves = [replace(halves_of(right, body() + noise(2, 0.02)), state=state) for state in range(3)]
    maps = halves[0].maps()
    states = tuple(StateAgreement(n, (n, n), 0.3, maps, intensities(), intensities()) for n in (1, 2, 3))
    begun = replace(validation(halves[0]), states=states)
    found = beside_the_run(begun, {0: phased(body()), 1: phased(wrong)}, halves)
    assert found.density is found.states[0].density
    assert [state.density is None for state in found.states] == [False, False, True]
    (said,) = found.doubts
    assert said.startswith("The claim does not hold for the density of state 2, which agrees")
    assert "(phase --model 2 --restart, with" in said
    assert found.statement.endswith(said)
    told = found.describe()["states"]
    assert found.describe()["density"]["verdict"] == "holds"  # of the first state
    assert told[0]["density_A"] < 13
    assert told[1]["density_A"] > 18
    assert told[2]["density_A"] is None
    rows = dict(in_rows(found, 1.0))
    assert rows["state 2"].endswith(f"density of the run to {told[1]['density_A']:.3g} A (0.5)")
    assert "density" not in rows["state 3"]


def validated(run: Run) -> Validation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return validate(run, SETTINGS, PHASING, device="cpu")


@pytest.fixture(scope="module")
def phased_run(good_run: Run, good_halves: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of the good run with its halves, all of them phased."""
    folder = tmp_path_factory.mktemp("phased") / "run"
    shutil.copytree(good_run.path, folder)
    run = Run.open(folder, good_run.source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        phase_run(run, PHASING, "cpu")
    return run


def test_a_run_that_went_well_agrees_with_its_halves(phased_run: Run) -> None:
    found = validated(phased_run)
    assert found.density_agrees_to_A is not None
    assert found.resolution_A is not None
    assert found.density_agrees_to_A < 1.15 * found.resolution_A
    assert found.doubts == []
    told = read_validation(phased_run.path)
    assert told is not None
    assert told["density"]["agrees_to_A"] == found.density_agrees_to_A


def test_a_density_that_was_phased_again_is_known_to_be_another(phased_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(phased_run.path, folder)
    run = Run.open(folder, phased_run.source)
    density = open_volume(folder / "density.h5")
    shells = np.fft.fftshift(np.fft.fftn(density.values))
    middle = shells.shape[0] // 2
    beyond = np.linalg.norm(np.indices(shells.shape) - middle, axis=0) > 4
    wrong = np.fft.ifftn(np.fft.ifftshift(np.where(beyond, -shells, shells))).real
    write_volume(folder / "density.h5", density.with_values(wrong.astype(np.float32)))
    found = validated(run)
    assert found.doubts
    assert read_validation(folder)["doubts"] == found.doubts  # type: ignore[index]
    write_volume(folder / "density.h5", density)
    told = read_validation(folder)
    assert told is not None
    assert told["statement"] == (
        f"This was of another density: the run was phased again since. It said: {found.claim}"
    )
    assert told["density"] is None  # nothing is said of a density by the numbers of another
    assert told["doubts"] == []
    assert validated(run).doubts == []


def two_states() -> Validation:
    """Densities of two states of a run, of which the second is wrong."""
    halves = [replace(halves_of(body(), body() + noise(2, 0.02)), state=state) for state in range(2)]
    states = tuple(
        StateAgreement(n, (n, n), 0.5, halves[0].maps(), intensities(), intensities()) for n in (1, 2)
    )
    begun = replace(validation(halves[0]), states=states)
    return beside_the_run(begun, {0: phased(body()), 1: phased(coarse(body(), 24.0))}, halves)


def test_a_density_of_a_further_state_that_was_phased_again_is_known_to_be_another(tmp_path: Path) -> None:
    found, density = two_states(), phased(body()).density
    (tmp_path / "phased_model_2").mkdir()
    for name in ("density.h5", "phased_model_2/density.h5"):
        write_volume(tmp_path / name, density)
    replace(found, belongs_to=identity_of(tmp_path)).save(tmp_path / "validation")
    told = read_validation(tmp_path)
    assert told is not None
    assert told["statement"].endswith(found.doubts[0])
    write_volume(tmp_path / "phased_model_2" / "density.h5", density.with_values(2 * density.values))
    told = read_validation(tmp_path)
    assert told is not None
    assert told["statement"] == (
        f"This was of another density: the run was phased again since. It said: {found.claim}"
    )
    assert told["doubts"] == []
    assert [state["density_A"] for state in told["states"]] == [None, None]
    assert told["states"][1]["resolution_A"] == found.states[1].resolution_A


def test_a_density_that_a_validation_does_not_know_is_no_change(tmp_path: Path) -> None:
    density = phased(body()).density
    write_volume(tmp_path / "density.h5", density)
    belongs_to = identity_of(tmp_path)
    (tmp_path / "phased_model_2").mkdir()
    write_volume(tmp_path / "phased_model_2" / "density.h5", density)
    (tmp_path / "phased_model_2_of_mine").mkdir()
    assert set(identity_of(tmp_path)) == {"intensity", "density", "density_2"}
    assert outdated(belongs_to, tmp_path) == ""
    assert outdated({**belongs_to, "density_3": "gone since"}, tmp_path) == ""


def test_an_older_file_without_the_claim_is_told_with_all_that_it_said(tmp_path: Path) -> None:
    found = replace(two_states(), belongs_to={"density": "another"})
    write_volume(tmp_path / "density.h5", phased(body()).density)
    found.save(tmp_path / "validation")
    file = tmp_path / "validation" / "validation.json"
    told = json.loads(file.read_text())
    assert told["claim"] == found.claim
    file.write_text(json.dumps({key: value for key, value in told.items() if key != "claim"}))
    older = read_validation(tmp_path)
    assert older is not None
    assert older["statement"].endswith(f"It said: {found.statement}")


def test_a_density_of_an_earlier_intensity_is_not_compared(phased_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(phased_run.path, folder)
    earlier = Phasing.open(folder)
    replace(earlier, origin={**earlier.origin, "checksum": "another"}).save(folder)
    found = validated(Run.open(folder, phased_run.source))
    assert found.density is None
    assert found.doubts == []
    assert any("of an earlier intensity" in remark and "--restart" in remark for remark in found.remarks)


def test_a_density_that_cannot_be_read_does_not_cost_the_validation(phased_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(phased_run.path, folder)
    (folder / "density.h5").unlink()
    found = validated(Run.open(folder, phased_run.source))
    assert found.resolution_A is not None
    assert found.density is None
    assert any(remark.startswith("The density in run could not be read: ") for remark in found.remarks)
    told = read_validation(folder)
    assert told is not None
    assert told["remarks"] == found.remarks


def test_a_density_that_no_process_could_make_does_not_cost_the_validation(
    phased_run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(phased_run.path, folder)
    (folder / "density.h5").unlink()
    at_work: Any = SimpleNamespace(
        halves=None, is_on_whole=True, is_at_work=False, wait=lambda: None, wait_for_whole=lambda *_: None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        validate(Run.open(folder, phased_run.source), SETTINGS, PHASING, device="cpu", at_work=at_work)
    told = read_validation(folder)
    assert told is not None
    assert told["density"] is None
    assert sum("The density in run could not be read" in remark for remark in told["remarks"]) == 1


def test_a_run_that_is_not_phased_is_validated_as_before(good_run: Run, good_halves: Any) -> None:
    found = validated(good_run)
    assert found.density is None
    assert found.density_agrees_to_A is None
    assert found.describe()["density"] is None
    assert found.doubts == []
    assert "the density of the run agrees with theirs to" not in dict(in_rows(found, 1.0))
