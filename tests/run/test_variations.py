"""Runs that files describe, and the same with other values."""

from pathlib import Path

import pytest

from orienteer.errors import FileError, SettingsError
from orienteer.run.settings import Settings
from orienteer.run.variations import variations
from orienteer.settings.loading import load_settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("frames.h5").touch()
    path = Path("runs/r1.toml")
    path.parent.mkdir()
    path.write_text('[run]\ndata = "frames.h5"\n')
    return path


def test_a_file_is_one_run(file: Path) -> None:
    (run,) = variations([file], ["emc.iterations=3"])
    assert (run.folder, run.overrides) == (Path("runs/r1"), ("emc.iterations=3",))
    assert run.settings.emc.iterations == 3


def test_values_are_combined_and_each_run_has_its_folder(file: Path) -> None:
    runs = variations([file], [], ["run.seed=1,2", "emc.symmetry=C1,I"])
    assert [run.folder.name for run in runs] == [
        "r1-seed-1-symmetry-C1", "r1-seed-1-symmetry-I", "r1-seed-2-symmetry-C1", "r1-seed-2-symmetry-I",
    ]  # fmt: skip
    for run in runs:  # what a job is told gives the same run
        again = load_settings(Settings, run.file, run.overrides)
        assert again.run.folder(run.file) == run.folder
        assert again.run.seed == run.settings.run.seed


def test_a_folder_that_looks_like_a_number_stays_a_name(file: Path) -> None:
    (run, _) = variations([file], ['run.out="1"'], ["run.seed=2,3"])
    assert load_settings(Settings, file, run.overrides).run.out == "1-seed-2"
    (run, _) = variations([file], ['run.out="true"'], ["run.seed=2,3"])
    assert load_settings(Settings, file, run.overrides).run.out == "true-seed-2"


def test_two_runs_cannot_share_a_folder(file: Path) -> None:
    other = file.with_name("r2.toml")
    other.write_text('[run]\ndata = "frames.h5"\nout = "runs/r1"\n')
    with pytest.raises(SettingsError, match="would have the same folder, runs/r1"):
        variations([file, other])


def test_data_that_are_not_there_are_told_before_anything_is_done(file: Path) -> None:
    Path("frames.h5").unlink()
    with pytest.raises(FileError, match=r"frames\.h5: .* names these data, but they do not exist"):
        variations([file])


@pytest.mark.parametrize("text", ["run.seed", "run.seed=1,,2", "seed=1,2"])
def test_what_is_no_list_of_values_is_refused(file: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"expected section\.key=value"):
        variations([file], [], [text])


def test_a_wrong_value_is_refused_as_in_a_file(file: Path) -> None:
    with pytest.raises(SettingsError, match=r"run\] seed"):
        variations([file], [], ["run.seed=1,-2"])


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("seed=1,2", "--over seed=1,2: expected section.key=value,value"),
        ("run.seed=1", "--over run.seed=1: one value makes no array"),
        ("run.seed=1,2,1", "--over run.seed=1,2,1: 1 is given twice"),
        ("run.seed=1,a", r"--over run\.seed=a: \[run\] seed = 'a'"),
        ("run.sed=1,2", "--over run.sed=1: unknown key 'sed'"),
    ],
)
def test_wrong_values_are_told_by_the_option_that_named_them(file: Path, over: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        variations([file], over=[over])
