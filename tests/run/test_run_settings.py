"""The section of a settings file that tells which data it is for."""

from pathlib import Path

import pytest

from orienteer.errors import SettingsError
from orienteer.run.run_settings import RunSettings
from orienteer.run.settings import Settings
from orienteer.settings.loading import load_settings


def test_a_run_lives_beside_its_file_unless_told_otherwise() -> None:
    assert RunSettings().folder(Path("runs/r0042.toml")) == Path("runs/r0042")
    assert RunSettings(out="else/where").folder(Path("runs/r0042.toml")) == Path("else/where")


def test_a_file_without_an_ending_must_name_a_folder() -> None:
    with pytest.raises(SettingsError, match="cannot name it"):
        RunSettings().folder(Path("runs/r0042"))


def test_a_file_for_a_whole_run_must_name_its_data(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[run]\nmethod = "mtip"\n')
    run = load_settings(Settings, file).run
    assert run.method == "mtip"
    with pytest.raises(SettingsError, match="no data under"):
        run.patterns(file)


def test_a_wrong_method_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[run]\nmethod = "emcc"\n')
    with pytest.raises(SettingsError, match="line 2") as refused:
        load_settings(Settings, file)
    assert refused.value.hint == "Did you mean 'emc'?"
