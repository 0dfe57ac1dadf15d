"""What a caller hands to a run: what can be meant is taken, the rest refused in a sentence."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.errors import DeviceError, OrienteerError, SettingsError
from orienteer.run.run import Run
from orienteer.run.settings import Settings


def create(path: Path, source: Any, settings: Any = None, **arguments: Any) -> Run:
    given = {"device": "cpu", "method": "recurrence", **arguments}
    return Run.create(path, source, settings, **given)


def test_the_data_may_be_a_path_an_array_or_patterns(runs: SimpleNamespace, tmp_path: Path) -> None:
    np.save(tmp_path / "frames.npy", np.ones((12, 3, 3), np.int32))
    from_path = create(tmp_path / "a", str(tmp_path / "frames.npy"))
    assert next(from_path.iterate()).iteration == 1
    assert next(create(tmp_path / "b", np.ones((12, 3, 3), np.int32)).iterate()).iteration == 1
    assert next(create(tmp_path / "c", runs.source().read()).iterate()).iteration == 1
    again = Run.open(tmp_path / "a", source=tmp_path / "frames.npy")
    assert next(again.iterate()).iteration == 2


def test_settings_may_be_a_dictionary_of_the_section_or_of_all(runs: SimpleNamespace, tmp_path: Path) -> None:
    assert create(tmp_path / "a", runs.source(), {"steps": 3}).settings.steps == 3
    assert create(tmp_path / "b", runs.source(), {"recurrence": {"steps": 4}}).settings.steps == 4
    with pytest.raises(SettingsError, match="unknown key 'step'") as caught:
        create(tmp_path / "c", runs.source(), {"step": 3})
    assert caught.value.hint == "Did you mean 'steps'?"
    for wrong in (7, "fast", orienteer.SimulateSettings(), Settings()):
        with pytest.raises(SettingsError, match="holds no settings of the method 'recurrence'"):
            create(tmp_path / "c", runs.source(), wrong)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("seed", [-3, 1.5, "a", None, True, [1]])
def test_a_seed_that_is_none_is_refused_before_anything_is_written(
    seed: Any, runs: SimpleNamespace, tmp_path: Path
) -> None:
    with pytest.raises(OrienteerError, match=r"the seed .* is not a whole number from 0 on"):
        create(tmp_path / "run", runs.source(), seed=seed)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("device", ["tpu", None, 3])
def test_a_device_that_is_none_is_refused_before_anything_is_written(
    device: Any, runs: SimpleNamespace, tmp_path: Path
) -> None:
    with pytest.raises(DeviceError, match="there is no device"):
        create(tmp_path / "run", runs.source(), device=device)
    assert not (tmp_path / "run").exists()


def test_a_seed_of_numpy_is_a_seed(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = create(tmp_path / "run", runs.source(), seed=np.int64(3))
    assert run.seed == 3
    assert create(tmp_path / "run", runs.source(), seed=3).described == run.described
    assert run.described["device_used"] == "cpu"


def test_wrong_kinds_are_named(runs: SimpleNamespace, tmp_path: Path) -> None:
    for path in (None, 3, ""):
        with pytest.raises(OrienteerError, match="is not a path"):
            create(path, runs.source())  # type: ignore[arg-type]
        with pytest.raises(OrienteerError, match="is not a path"):
            Run.open(path)  # type: ignore[arg-type]
    with pytest.raises(OrienteerError, match="cannot open NoneType"):
        create(tmp_path / "run", None)
    with pytest.raises(SettingsError, match="is not known"):
        create(tmp_path / "run", runs.source(), method=["emc"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("n_steps", [-1, 1.5, "2", True])
def test_a_number_of_steps_is_a_whole_one(n_steps: Any, runs: SimpleNamespace, tmp_path: Path) -> None:
    run = create(tmp_path / "run", runs.source())
    with pytest.raises(OrienteerError, match=r"the number of steps .* is not a whole number"):
        run.iterate(n_steps)
    assert list(run.iterate(0)) == []
    assert len(list(run.iterate(np.int64(2)))) == 2  # type: ignore[arg-type]


def test_before_the_first_step_there_are_no_results(runs: SimpleNamespace, tmp_path: Path) -> None:
    run = create(tmp_path / "run", runs.source())
    for results in (run.volumes, run.orientations):
        with pytest.raises(OrienteerError, match=r"there are no results yet(.|\n)*Go on with the command"):
            results()


def test_a_folder_that_could_not_be_begun_is_gone(
    runs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> dict[str, str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("orienteer.run.directory._versions", fail)
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path / "run", runs.source())
    assert not (tmp_path / "run").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path / "mine", runs.source())
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_file_that_a_setting_names_is_part_of_the_run(runs: SimpleNamespace, tmp_path: Path) -> None:
    stir = tmp_path / "stir.txt"
    stir.write_text("0.5")
    settings = {"stir_file": str(stir)}
    list(create(tmp_path / "run", runs.source(), settings).iterate(2))
    stir.write_text("0.6")
    with pytest.raises(OrienteerError, match="Different now: the content of the stir_file") as caught:
        create(tmp_path / "run", runs.source(), settings)
    assert "\n" not in caught.value.message
    with pytest.raises(OrienteerError, match="Different now: the content of the stir_file"):
        next(Run.open(tmp_path / "run", source=runs.source()).iterate())
    stir.write_text("0.5")
    assert next(create(tmp_path / "run", runs.source(), settings).iterate()).iteration == 3
    stir.unlink()
    with pytest.raises(OrienteerError, match="does not exist"):
        create(tmp_path / "run", runs.source(), settings)
    with pytest.raises(OrienteerError, match="does not exist"):
        create(tmp_path / "other", runs.source(), settings)
    assert not (tmp_path / "other").exists()
