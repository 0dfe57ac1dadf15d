"""From a finished run to a claim: a good data set, noise, and what a stop in the middle leaves."""

import json
import shutil
import warnings
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.cli.validate import in_rows
from orienteer.compare.criteria import Resolution
from orienteer.errors import FileError, OrienteerError
from orienteer.phase.settings import PhaseSettings
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate import densities, half_phasing, sentinel_poses, validation, voxel_errors
from orienteer.validate.halves import Halves, begin_halves
from orienteer.validate.identity import identity_of
from orienteer.validate.result import Validation, read_validation
from orienteer.validate.sentinel_poses import pose_agreement
from orienteer.validate.validation import validate
from orienteer.volume.opening import open_volume, write_volume
from orienteer.volume.volume import Volume

# A volume that is given saves the search for it, which is half of the time.
PHASING = PhaseSettings(starts=4, schedule="150*raar(0.87) 50*er", support_volume_A3=1.3e6)
SETTINGS = ValidationSettings(sentinels=0.1, replicates=8, random_phases=2)


def validated(run: Run, halves: Halves | None = None) -> Validation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return validate(run, SETTINGS, PHASING, device="cpu", halves=halves)


@pytest.fixture(scope="module")
def good(good_run: Run, good_halves: Any) -> Validation:
    return validated(good_run, Halves(*good_halves))


@pytest.fixture(scope="module")
def noise(noise_run: Run) -> Validation:
    def never(*_: Any) -> Any:
        raise AssertionError("a half that ends here is asked before it is let go")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentinel_poses, "finished_emc", never)
        return validated(noise_run)


def test_good_data_agree_to_where_they_have_signal(good: Validation) -> None:
    edge_A = 1 / good.intensity.q_inv_A[np.isfinite(good.intensity.correlation)].max()
    assert good.resolution_A is not None
    assert edge_A * 0.95 < good.resolution_A < 60
    assert good.statement.startswith("Two independent halves of ")
    assert f"{good.resolution_A:.3g} A" in good.statement
    assert good.maps is not None
    assert np.nanmedian(good.maps.curves.corrected.correlation[1:8]) > 0.8
    assert good.sentinels is not None
    assert good.sentinels.median_deg < 5
    assert good.coverage is not None
    assert good.coverage.empty_share < 0.2
    assert good.whole.resolution_A is not None
    assert good.errors is not None
    error = good.errors.relative_error
    assert np.nanmedian(error[2:5]) < np.nanmedian(error[10:14]) < 1
    assert good.remarks[0].startswith("Both halves were given the symmetry D2")


def test_everything_is_written_and_read_again(good: Validation, good_run: Run) -> None:
    folder = good_run.path / "validation"
    told = read_validation(good_run.path)
    assert told is not None
    assert {**told, "created": ""} == {**good.describe(), "created": ""}
    assert told["run_id"] == good_run.described["run_id"]
    assert told["halves"][0]["seed"] != told["halves"][1]["seed"]
    assert told["halves"][0]["phase_seed"] != told["halves"][1]["phase_seed"]
    lengths = {len(told["fsc"][name]) for name in ("q_inv_A", "corrected", "masked", "unmasked", "half_bit")}
    assert len(lengths) == 1
    first, second, mask = (
        open_volume(folder / f"{name}.mrc") for name in ("density_half_1", "density_half_2", "mask")
    )
    assert first.shape == second.shape == mask.shape
    assert np.corrcoef(first.values.ravel(), second.values.ravel())[0, 1] > 0.5
    merged, error = (open_volume(folder / f"intensity_{name}.h5") for name in ("merged", "error"))
    shown = good_run.volumes()[0]
    assert error.shape == merged.shape == shown.shape
    # It is the intensity of the run before its filter: the same but for what the errors allow.
    known = np.isfinite(error.values) & np.isfinite(shown.values)
    assert np.median(np.abs(merged.values - shown.values)[known] / error.values[known]) < 1.5
    # The run itself is as it was.
    assert Run.open(good_run.path).finished


def copied(run: Run, folder: Path) -> Path:
    """The files of a run that tell what was validated, where they may be changed."""
    for name in ("run.json", "intensity.h5", "validation/validation.json", "validation/mask.mrc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.path / name, folder / name)
    return folder


def test_a_claim_keeps_what_it_rests_on(good: Validation) -> None:
    told = good.describe()
    assert told["densities_A"] == good.densities_agree_to_A
    assert told["speckles_A"] == good.speckles_agree_to_A
    assert told["resolution_A"] == max(told["densities_A"], told["speckles_A"])


def test_a_validation_of_something_else_says_so(good: Validation, good_run: Run, tmp_path: Path) -> None:
    run = copied(good_run, tmp_path)
    told = read_validation(run)
    assert told is not None
    assert told["statement"] == good.statement
    other = open_volume(run / "intensity.h5")
    write_volume(run / "intensity.h5", other.with_values(1.01 * other.values))
    told = read_validation(run)
    assert told is not None
    assert told["statement"].startswith("This was of another intensity: the run has gone on since. It said: ")
    assert told["statement"].endswith(good.statement)


def test_a_density_that_was_phased_again_does_not_keep_the_claim(
    good: Validation, good_run: Run, tmp_path: Path
) -> None:
    run = copied(good_run, tmp_path)
    density = Volume(np.random.default_rng(1).random((8, 8, 8)), 5.0)
    write_volume(run / "density.h5", density)
    replace(good, belongs_to=identity_of(run)).save(run / "validation")
    told = read_validation(run)
    assert told is not None
    assert told["statement"] == good.statement
    write_volume(run / "density.h5", density.with_values(density.values[::-1]))
    told = read_validation(run)
    assert told is not None
    assert told["statement"].startswith(
        "This was of another density: the run was phased again since. It said"
    )


def test_nothing_of_an_earlier_validation_stays(
    good: Validation, good_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "validation"
    good.save(folder)
    assert (folder / "density_half_1.mrc").exists()
    replace(good, maps=None).save(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["validation.json"]

    def fails(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("orienteer.validate.result.write_volume", fails)
    with pytest.raises(OSError, match="full"):
        good.save(folder)
    assert read_validation(tmp_path) is None


def test_a_second_time_nothing_is_done_again(
    good: Validation, good_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was done before")

    monkeypatch.setattr(half_phasing, "phase", never)
    monkeypatch.setattr(voxel_errors, "bootstrap_intensity", never)
    # Comparing takes seconds, and is done again.
    monkeypatch.setattr(densities, "compare_phasings", lambda *_, **__: good.maps)
    monkeypatch.setattr(validation, "compare_intensities", lambda *_, **__: good.intensity)
    monkeypatch.setattr(validation, "worse_of", lambda _: good.whole)
    again = validated(good_run)
    assert {**again.describe(), "created": ""} == {**good.describe(), "created": ""}


def test_noise_shows_nothing_beyond_the_first_shells(noise: Validation) -> None:
    assert noise.resolution_A is None
    assert "show no structure" in noise.statement
    beyond = noise.intensity.q_inv_A > 2 / 200.0
    assert np.nanmean(noise.intensity.correlation[beyond]) < 0.143
    assert noise.sentinels is not None
    assert noise.sentinels.median_deg > 0.6 * noise.sentinels.chance_deg
    json.dumps(noise.describe(), allow_nan=False)


def test_what_is_said_of_noise_does_not_contradict_itself(noise: Validation, good: Validation) -> None:
    """Densities that are phased from the same radial mean agree; a table must not call that structure."""
    rows = dict(in_rows(good, 1.0))
    assert rows["densities agree to"].split()[1] == "A"
    maps = noise.maps or good.maps
    assert maps is not None
    alike = replace(maps, resolutions={**maps.resolutions, "0.143": Resolution(33.7, 1 / 33.7, False, "")})
    round_only = replace(noise, maps=alike)
    assert "radial mean only" in round_only.statement
    rows = dict(in_rows(round_only, 1.0))
    assert rows["densities agree to"].startswith("nothing beyond their radial mean: 33.7 A (0.143), ")
    assert rows["intensities agree to"].startswith("nothing ")


def test_a_half_that_is_opened_again_says_the_same(noise: Validation, noise_run: Run) -> None:
    halves = begin_halves(noise_run, SETTINGS)
    first, second = (halves.asked(half, "cpu") for half in range(2))
    assert not halves.models
    again = pose_agreement(first.poses, second.poses, noise.intensity.quaternion, "C1", first.is_flat)
    assert noise.sentinels is not None
    assert astuple(again) == astuple(noise.sentinels)
    assert [one.diameter_A for one in (first, second)] == [half.diameter_A for half in noise.halves]


def test_a_run_that_differs_from_its_halves_gets_no_unmixed_praise(good: Validation) -> None:
    nothing = replace(good.whole, correlation=0 * good.whole.correlation)
    assert "the run of all frames has found something else" in replace(good, whole=nothing).statement
    assert "the run of all frames" not in good.statement


def test_a_claim_needs_speckles_and_not_a_radial_mean_alone(good: Validation) -> None:
    curve = np.where(good.intensity.q_inv_A > 1 / 80, 0.0, good.intensity.correlation)
    less = replace(good, intensity=replace(good.intensity, correlation=curve))
    assert less.resolution_A == pytest.approx(80, rel=0.1)
    assert not less.reaches_edge
    assert "in their radial mean only" in less.statement
    for one, is_less in ((less, True), (good, False)):
        told = dict(in_rows(one, 1.0))["densities agree to"]
        assert told.endswith(f"; beyond {one.resolution_A:.3g} A in their radial mean only") == is_less
    none = replace(good, intensity=replace(good.intensity, correlation=0 * curve))
    assert none.resolution_A is None
    assert "radial mean only, and show no structure" in none.statement


def test_what_is_alike_on_few_speckles_is_neither_claimed_nor_called_a_radial_mean(good: Validation) -> None:
    assert not good.too_few_speckles
    few = replace(good, intensity=replace(good.intensity, order=2000))
    assert few.intensity.resolution_A == good.intensity.resolution_A
    assert few.resolution_A is None
    assert few.too_few_speckles
    assert few.describe()["too_few_speckles"]
    assert few.statement.endswith("A, but on too few speckles to tell structure from chance.")
    assert any("a symmetry of order 2000" in remark for remark in few.remarks)
    rows = dict(in_rows(few, 1.0))
    assert rows["densities agree to"].split()[1] == "A"
    assert rows["intensities agree to"].endswith("A (0.5, about their radial mean, possibly by chance)")


def test_phases_that_do_not_repeat_so_far_are_told(good: Validation) -> None:
    assert good.halves[0].phasing_remarks
    unsure = replace(good, halves=(replace(good.halves[0], phases_repeat_to_A=150.0), good.halves[1]))
    assert "The phases of half_1 repeat from start to start only to 150 A." in unsure.remarks


def test_phasing_is_blamed_where_intensities_agree_and_densities_do_not(good: Validation) -> None:
    words = "phasing limits the claim"
    assert not any(words in remark for remark in good.remarks)
    assert good.maps is not None
    coarse = Resolution(3 * good.maps.resolutions["0.143"].resolution_A, 0.0, False, "")  # type: ignore[operator]
    worse = replace(good.maps, resolutions={**good.maps.resolutions, "0.143": coarse})
    assert any(words in remark for remark in replace(good, maps=worse).remarks)


def test_halves_that_cannot_be_phased_agree_on_nothing(good: Validation) -> None:
    bare = replace(good, maps=None, troubles=("half_1 could not be phased: there is nothing in it.",))
    assert bare.resolution_A is None
    assert "agree on nothing" in bare.statement
    assert bare.remarks[0].startswith("half_1 could not be phased")
    assert bare.describe()["fsc"] is None


def test_a_run_that_has_not_ended_is_refused(good_run: Run, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "new", good_run.source, good_run.settings, device="cpu")
    with pytest.raises(OrienteerError, match="has not come to its end"):
        begin_halves(run)


def test_a_damaged_description_is_refused(tmp_path: Path) -> None:
    assert read_validation(tmp_path) is None
    folder = tmp_path / "validation"
    folder.mkdir()
    (folder / "validation.json").write_text("[]")
    with pytest.raises(FileError, match="does not describe a validation"):
        read_validation(tmp_path)
    (folder / "validation.json").write_text('{"format": "orienteer-validation", "version": 99}')
    with pytest.raises(FileError, match="has version 99"):
        read_validation(tmp_path)
