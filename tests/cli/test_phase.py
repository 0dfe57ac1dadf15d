"""``orienteer phase``: from a run or a volume to a density, without a word more than needed."""

import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import mrcfile
import numpy as np
import pytest

import orienteer
from orienteer.phase import result as result_files
from orienteer.run import signals
from orienteer.run.lock import PHASING, RunLock
from orienteer.run.run import Run
from orienteer.volume.opening import open_volume, write_volume
from orienteer.volume.volume import Volume

N, VOXEL_INV_A = 21, 0.005
QUICK = ("--starts", 7, "--schedule", "60*raar(0.87) 20*er", "--diameter-A", 90, "--support-volume-A3", 1.5e5)


def an_intensity(zeros: bool = False) -> Volume:
    """That of three balls, known between a small hole and the last whole shell."""
    axis = (np.arange(N) - N // 2).astype(np.float64)
    density = np.zeros((N, N, N))
    for x, y, z, r in ((-2, 0, 1, 2.3), (2, 1, -1, 1.8), (0, -2.5, 0, 1.5)):
        square = (axis[:, None, None] - x) ** 2 + (axis[:, None] - y) ** 2 + (axis - z) ** 2
        density += np.exp(-((square / r**2) ** 2))
    values = np.fft.fftshift(np.abs(np.fft.fftn(density)) ** 2)
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    values[(radius < 1) | (radius > N // 2)] = 0 if zeros else np.nan
    return Volume(values, VOXEL_INV_A, "reciprocal")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    path = tmp_path / "intensity.h5"
    write_volume(path, an_intensity())
    return path


def test_a_volume_becomes_a_density_with_its_picture(run: Any, volume: Path) -> None:
    result = run("phase", volume.name, *QUICK)
    assert result.status == 0, result.errors
    folder = Path("intensity_phased")
    names = {"density.mrc", "density.h5", "support.mrc", "phasing.json", "density.png"}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "density.png").read_bytes().startswith(b"\x89PNG")
    density = open_volume(folder / "density.mrc")
    assert density.space == "real"
    assert density.voxel_size[0] * density.shape[0] == pytest.approx(1 / VOXEL_INV_A)
    assert "of 7 agree" in result.output
    assert "hand" in result.output
    assert "arbitrary" in result.errors


def test_json_tells_all_and_the_seed_makes_it_again(run: Any, volume: Path) -> None:
    first = run("phase", volume.name, *QUICK, "--json", "--no-picture", "--seed", 4, "--out", "a").json
    second = run("phase", volume.name, *QUICK, "--json", "--no-picture", "--seed", 4, "--out", "b").json
    assert first["seed"] == 4
    assert first["settings"]["starts"] == 7
    assert first["intensity"]["path"] == volume.name
    assert first["picture"] is None
    assert [Path(name).parent.name for name in first["files"]] == ["a"] * 4
    assert first["agreement"] == second["agreement"]
    np.testing.assert_array_equal(open_volume("a/density.h5").values, open_volume("b/density.h5").values)


def test_the_same_command_shows_what_is_there_and_another_one_is_refused(run: Any, volume: Path) -> None:
    command = ("phase", volume.name, *QUICK, "--no-picture", "--out", "out")
    assert run(*command).status == 0
    before = Path("out/phasing.json").stat().st_mtime_ns
    assert run(*command).status == 0
    assert Path("out/phasing.json").stat().st_mtime_ns == before
    other = run(*command, "--seed", 9)
    assert other.status == 1
    assert "--restart" in other.errors
    assert run(*command, "--seed", 9, "--restart").status == 0
    assert json.loads(Path("out/phasing.json").read_text())["seed"] == 9


def test_a_density_of_somebody_else_is_not_written_over(run: Any, volume: Path) -> None:
    Path("out").mkdir()
    Path("out/density.mrc").write_text("precious")
    result = run("phase", volume.name, *QUICK, "--out", "out")
    assert result.status == 1
    assert "density.mrc" in result.errors
    assert Path("out/density.mrc").read_text() == "precious"


def test_a_run_is_phased_into_its_own_folder_with_its_seed_and_symmetry(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "volumes", lambda self: [an_intensity()])
    list(Run.create("run", orienteer.open(frames), fake.settings(symmetry="C2"), seed=3).iterate())
    result = run("phase", "run", *QUICK, "--json", "--no-picture")
    assert result.status == 0, result.errors
    told = result.json
    assert told["path"] == "run"
    assert (told["seed"], told["settings"]["symmetry"]) == (3, "C2")
    assert told["intensity"]["iteration"] == 5
    assert told["intensity"]["run_id"]
    assert Path("run/density.mrc").exists()
    assert Run.open("run").finished  # the run is as it was
    own = run("phase", "run", *QUICK, "--json", "--no-picture", "--symmetry", "C1", "--restart")
    assert own.json["settings"]["symmetry"] == "C1"
    assert any("symmetry C2, but phasing uses C1" in remark for remark in own.json["remarks"])
    assert not any("but phasing uses" in remark for remark in told["remarks"])
    refused = run("phase", "run", *QUICK, "--voxel-inv-A", VOXEL_INV_A)
    assert "Leave out the voxel size" in refused.errors
    Run.create("run", orienteer.open(frames), fake.settings(), restart=True)
    assert not Path("run/density.mrc").exists()  # it was that of another intensity
    assert not Path("run/phasing.json").exists()


def test_zeros_of_a_map_are_taken_as_never_measured(run: Any, tmp_path: Path) -> None:
    write_volume(tmp_path / "map.mrc", an_intensity(zeros=True))
    told = run("phase", "map.mrc", *QUICK, "--json", "--no-picture").json
    assert any("never measured" in remark for remark in told["remarks"])
    write_volume(tmp_path / "map.bin", an_intensity(zeros=True))
    same = run(
        "phase", "map.bin", *QUICK, "--json", "--no-picture", "--voxel-inv-A", VOXEL_INV_A, "--restart"
    )
    assert same.json["resolution_A"] == pytest.approx(told["resolution_A"], rel=1e-3)


def test_a_known_mass_gives_electrons(run: Any, volume: Path) -> None:
    told = run("phase", volume.name, *QUICK, "--mass-kDa", 100, "--json", "--no-picture").json
    assert told["unit"] == "electrons / A^3"
    density = open_volume("intensity_phased/density.h5")
    total = density.values.sum(dtype=np.float64) * np.prod(density.voxel_size)
    assert total == pytest.approx(53400, rel=0.05)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent.h5", "does not exist"),
        (".", "holds no run"),
        ("real.mrc", "real space"),
        ("zero.h5", "zero everywhere"),
    ],
)
def test_what_cannot_be_phased_is_refused_in_a_sentence(
    run: Any, tmp_path: Path, name: str, words: str
) -> None:
    write_volume(tmp_path / "real.mrc", Volume(np.ones((14, 14, 14)), 2.0))
    write_volume(tmp_path / "zero.h5", Volume(np.zeros((14, 14, 14)), 0.01, "reciprocal"))
    result = run("phase", name)
    assert result.status == 1
    assert words in result.errors
    assert "defect" not in result.errors
    assert len(result.errors.strip().splitlines()) <= 2


def test_a_model_that_is_not_there_is_refused(run: Any, volume: Path) -> None:
    result = run("phase", volume.name, "--model", 2)
    assert result.status == 1
    assert "count from 1" in result.errors


def test_two_scales_are_refused_before_anything_is_computed(run: Any, volume: Path) -> None:
    result = run("phase", volume.name, "--electrons", 1e5, "--mass-kDa", 100)
    assert result.status == 2
    assert "give one of them" in result.errors


def test_a_schedule_that_cannot_be_read_is_refused_with_its_place(run: Any, volume: Path) -> None:
    result = run("phase", volume.name, "--schedule", "many*raar")
    assert result.status == 2
    assert "--schedule" in result.errors


def test_a_header_without_an_origin_is_centred_and_remarked(run: Any, volume: Path) -> None:
    with mrcfile.new("foreign.mrc") as file:
        file.set_data(an_intensity(zeros=True).values.transpose(2, 1, 0))
        file.voxel_size = 1.0
    told = run("phase", "foreign.mrc", *QUICK, "--json", "--no-picture", "--voxel-inv-A", VOXEL_INV_A)
    assert any("n // 2" in remark for remark in told.json["remarks"])
    same = run("phase", volume.name, *QUICK, "--json", "--no-picture").json
    assert told.json["r_factor"]["overall"] == pytest.approx(same["r_factor"]["overall"], rel=0.2)


def test_a_voxel_size_that_is_given_counts_more_than_that_of_the_file(run: Any, volume: Path) -> None:
    result = run("phase", volume.name, *QUICK, "--voxel-inv-A", VOXEL_INV_A / 10)
    assert result.status == 1
    assert "1/nm" in result.errors
    assert not Path("intensity_phased").exists()


def test_a_diameter_that_the_data_contradict_is_remarked(run: Any, volume: Path) -> None:
    told = run("phase", volume.name, *QUICK, "--json", "--no-picture", "--diameter-A", 35).json
    assert any("is not that of the autocorrelation" in remark for remark in told["remarks"])


def test_one_process_phases_at_a_time_and_leaves_no_lock(run: Any, volume: Path) -> None:
    command = ("phase", volume.name, *QUICK, "--no-picture", "--out", "out")
    Path("out").mkdir()
    with RunLock(Path("out"), PHASING):
        result = run(*command)
    assert result.status == 1
    assert "already phasing into this folder" in result.errors
    assert run(*command).status == 0
    assert not Path("out", PHASING).exists()
    with RunLock(Path("out"), PHASING):  # what is there may be looked at meanwhile
        assert run(*command).status == 0


def test_a_folder_that_is_none_is_refused_before_anything_is_computed(
    run: Any, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.phase.phasing.phase", None)
    Path("out").write_text("a file")
    result = run("phase", volume.name, *QUICK, "--out", "out")
    assert result.status == 1
    assert result.errors.startswith("Error: out")
    assert "defect" not in result.errors


def test_the_density_of_another_intensity_does_not_go_into_a_run(
    run: Any, frames: Path, volume: Path, fake: Any
) -> None:
    list(Run.create("run", orienteer.open(frames), fake.settings()).iterate())
    result = run("phase", volume.name, *QUICK, "--out", "run")
    assert result.status == 1
    assert "another intensity" in result.errors


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "orienteer-phasing", "version": 1}'])
def test_a_damaged_description_is_told_with_the_way_out(run: Any, volume: Path, content: str) -> None:
    Path("out").mkdir()
    Path("out/phasing.json").write_text(content)
    result = run("phase", volume.name, *QUICK, "--out", "out", "--no-picture")
    assert result.status == 1
    assert "phasing.json" in result.errors
    assert "--restart" in result.errors
    assert "defect" not in result.errors
    assert run("phase", volume.name, *QUICK, "--out", "out", "--no-picture", "--restart").status == 0


@pytest.mark.parametrize("is_there", [False, True])
def test_ctrl_c_tells_what_is_kept(run: Any, volume: Path, is_there: bool, monkeypatch: Any) -> None:
    command = ("phase", volume.name, *QUICK, "--no-picture", "--out", "out")
    if is_there:
        assert run(*command).status == 0
    before = Path("out/phasing.json").read_bytes() if is_there else None

    def interrupt(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    monkeypatch.setattr(signals, "_heard_at_s", -math.inf)
    monkeypatch.setattr("orienteer.phase.phasing.phase", interrupt)
    result = run(*command, "--restart")
    assert result.status == 130
    assert ("density is unchanged" if is_there else "nothing was written") in result.errors
    assert Path("out").exists() == is_there
    assert not is_there or Path("out/phasing.json").read_bytes() == before


def test_ctrl_c_while_the_files_are_written_leaves_them_whole(
    run: Any, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("phase", volume.name, *QUICK, "--no-picture", "--out", "out")
    write = result_files.write_volume

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        write(*arguments)

    monkeypatch.setattr(signals, "_heard_at_s", -math.inf)
    with monkeypatch.context() as patched:
        patched.setattr(
            result_files, "write_volume", lambda *a: (interrupted if "mrc" in str(a[0]) else write)(*a)
        )
        patched.setattr(signals, "_ECHO_S", math.inf)
        result = run(*command)
    assert result.status == 130
    assert "the density has been written" in result.errors
    assert run(*command, "--json").json["n_starts"] == 7


def test_what_a_killed_phasing_left_in_a_run_is_written_over(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "volumes", lambda self: [an_intensity()])
    list(Run.create("run", orienteer.open(frames), fake.settings()).iterate())
    Path("run/density.mrc").write_text("half")
    assert run("phase", "run", *QUICK, "--no-picture").status == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_the_numbers_come_even_when_the_picture_cannot_be_drawn(
    run: Any, volume: Path, as_json: bool
) -> None:
    Path("out/density.png").mkdir(parents=True)
    result = run("phase", volume.name, *QUICK, "--out", "out", *(["--json"] if as_json else []))
    assert result.status == 1
    if as_json:
        assert result.json["n_starts"] == 7
        assert "density.png" in result.json["error"]
    else:
        assert "of 7 agree" in result.output
        assert "density.png" in result.errors


def test_what_differs_from_the_density_that_is_there_is_named(run: Any, volume: Path) -> None:
    command = ("phase", volume.name, *QUICK, "--no-picture", "--out", "out")
    first, again = run(*command), run(*command)
    assert (first.status, again.status) == (0, 0)
    assert "Written to out" in first.output
    assert "It is in out" in again.output
    assert "It was phased already" in again.errors
    assert "different input: seed, symmetry." in run(*command, "--seed", 5, "--symmetry", "C2").errors


def test_what_another_process_has_just_found_is_taken(
    run: Any, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("phase", volume.name, *QUICK, "--no-picture", "--out", "out")
    assert run(*command).status == 0
    Path("out/phasing.json").rename("kept.json")

    class Slow(RunLock):
        def __enter__(self) -> Any:
            entered = super().__enter__()
            Path("kept.json").rename("out/phasing.json")
            return entered

    Path("out/density.mrc").rename("out/density.old")
    Path("out/density.h5").rename("out/density.older")
    monkeypatch.setattr("orienteer.cli.phase_folder.RunLock", Slow)
    monkeypatch.setattr("orienteer.phase.phasing.phase", None)
    result = run(*command)
    assert "density.h5: does not exist" in result.errors  # it looked again, and computed nothing
