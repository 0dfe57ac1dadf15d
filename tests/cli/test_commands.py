"""Each command on small data: what it prints, what it writes, and that JSON says the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.square import square_detector
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns


def test_doctor_names_what_is_missing_and_how_to_get_it(run: Any) -> None:
    findings = run("doctor", "--json").json["findings"]
    parts = {finding["part"]: finding for finding in findings}
    assert parts["numpy"]["present"]
    assert all(finding["how"] for finding in findings if not finding["present"])
    assert "Ready." in run("doctor").output


def test_rotations_reports_the_600_cell_and_writes_it(run: Any) -> None:
    report = run("rotations", "--level", 4, "--out", "grid.dat", "--json").json
    assert report["rotations"] == 10 * (5 * 4**3 + 4)
    assert Path("grid.dat").read_text().splitlines()[0] == "3240"
    assert run("rotations", "--resolution-A", 30, "--diameter-A", 100, "--symmetry", "I").status == 0
    assert run("rotations").status == 2
    assert run("rotations", "--level", 2, "--symmetry", "Q7").status == 2


def test_simulate_is_reproducible_and_flags_win_over_set_and_file(run: Any) -> None:
    Path("run.toml").write_text("[simulate]\nframes = 3\nseed = 5\n[detector]\npixels = 16\n")
    common = ["simulate", "sphere", "--settings", "run.toml", "--photons-per-frame", 50]
    assert run(*common, "--out", "a.h5", "--json").json["frames"] == 3
    assert run(*common, "--set", "simulate.frames=4", "--out", "b.h5", "--json").json["frames"] == 4
    assert (
        run(*common, "--set", "simulate.frames=4", "--frames", 6, "--out", "c.h5", "--json").json["frames"]
        == 6
    )
    a, c = (orienteer.open(name).read(slice(0, 3)) for name in ("a.h5", "c.h5"))
    np.testing.assert_array_equal(a.dense(), c.dense())
    assert run(*common, "--seed", 6, "--out", "d.h5").status == 0
    assert not np.array_equal(orienteer.open("d.h5").read().dense(), a.dense())


@pytest.mark.parametrize(
    "line",
    [
        ["simulate", "sphere", "--frames", 2, "--set", "detector.pixels=8", "--out"],
        ["hits", "frames.h5", "--no-find", "--out"],
        ["hits", "frames.h5", "--no-find", "--out", "hits.h5", "--table"],
        ["convert", "frames.h5"],
        ["rotations", "--level", 1, "--out"],
        ["settings", "--out"],
    ],
    ids=lambda line: " ".join(map(str, line[:1])),
)
def test_a_file_is_written_over_only_where_that_is_asked_for(run: Any, frames: Path, line: list[Any]) -> None:
    there = Path("there.csv" if "--table" in line else "there.h5")
    there.write_text("weeks of work")
    told = run(*line, there)
    assert told.status == 1
    assert f"{there}: exists already and is not overwritten." in told.errors
    assert "--overwrite" in told.errors
    assert there.read_text() == "weeks of work"
    Path("hits.h5").unlink(missing_ok=True)
    assert run(*line, there, "--overwrite").status == 0
    assert there.read_bytes() != b"weeks of work"


def test_simulate_refuses_an_ending_that_no_format_claims_before_it_works(run: Any) -> None:
    result = run("simulate", "sphere", "--out", "frames.xyz")
    assert result.status == 1
    assert "frames.xyz" in result.errors
    assert ".cxi" in result.errors


def test_inspect_reports_and_draws(run: Any, frames: Path) -> None:
    report = run("inspect", frames, "--json").json
    assert report["frames"] == 12
    assert report["format"] == "Orienteer"
    assert report["pixels"] == 24 * 24
    assert report["resolution_edge_A"] > report["resolution_corner_A"] > 0
    assert 150 < report["photons_per_frame"]["mean"] < 250
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    text = run("inspect", frames, "--no-picture").output
    assert "24 x 24" in text
    assert "missing mask" in text


def test_inspect_says_what_is_missing_and_takes_it_from_the_command_line(run: Any, frames: Path) -> None:
    run("convert", frames, "photons.emc")
    missing = run("inspect", "photons.emc", "--json", "--no-picture").json["missing"]
    assert set(missing) == {"detector", "wavelength_A"}
    report = run(
        "inspect", "photons.emc", "--geometry", frames, "--wavelength-A", 2.7, "--json", "--no-picture"
    ).json
    assert set(report["missing"]) == {"mask"}
    wrong = run("convert", "photons.emc", "wrong.h5", "--geometry", "photons.emc")
    assert wrong.status == 1


def test_inspect_says_that_every_pixel_is_masked(run: Any) -> None:
    detector = square_detector(8, pixel_size_m=1e-3, distance_m=0.1, beam_stop_radius_pixels=99)
    with writer_for("masked.h5", detector=detector) as writer:
        writer.append(Patterns(np.ones((3, 64), np.int32), columns={"wavelength_A": np.full(3, 2.0)}))
    report = run("inspect", "masked.h5", "--json", "--no-picture").json
    assert list(report["missing"]) == ["pixels"]
    assert report["resolution_corner_A"] is None
    text = run("inspect", "masked.h5").output
    assert "missing pixels: every pixel is masked" in text
    assert "inf" not in text


def test_a_name_that_is_none_of_a_picture_is_refused_before_anything_is_read(
    run: Any, frames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.cli.inspect.kind_of", lambda path: 1 / 0)
    refused = run("inspect", frames, "--picture", "frames.xyz")
    assert refused.status == 1
    assert "Give a name that ends in .png." in refused.errors


def test_inspect_says_of_the_present_folder_that_it_is_no_file(run: Any) -> None:
    refused = run("inspect", ".")
    assert refused.status == 1
    assert ".png" not in refused.errors


def test_inspect_looks_at_a_part_of_a_large_set(run: Any, frames: Path) -> None:
    report = run("inspect", frames, "--frames", 5, "--json", "--no-picture").json
    assert report["frames"] == 12
    assert report["frames_looked_at"] == 5


@pytest.mark.parametrize("name", ["out.cxi", "out.npz", "out.emc", "out.npy"])
def test_convert_keeps_the_photons_in_every_format(run: Any, frames: Path, name: str) -> None:
    result = run("convert", frames, name, "--json")
    assert result.status == 0, result.errors
    assert result.json["frames"] == 12
    np.testing.assert_array_equal(orienteer.open(name).read().dense(), orienteer.open(frames).read().dense())


def test_convert_says_what_the_format_cannot_keep(run: Any, frames: Path) -> None:
    assert "event ids" in run("convert", frames, "out.emc").errors


def test_convert_writes_the_detector_alone_and_geometries_to_each_other(run: Any, frames: Path) -> None:
    assert run("convert", frames, "detector.geom").status == 0
    assert run("convert", "detector.geom", "detector.dat").status == 0
    first = orienteer.open(frames).detector
    assert first is not None
    for name in ("detector.geom", "detector.dat"):
        np.testing.assert_allclose(orienteer.open_detector(name).directions, first.directions, atol=1e-12)
        assert run("inspect", name, "--wavelength-A", 2.7).status == 0
        assert Path(f"{name}.png").exists()


def test_convert_refuses_to_write_over_its_input(run: Any, frames: Path) -> None:
    before = frames.read_bytes()
    assert run("convert", frames, frames).status == 1
    assert frames.read_bytes() == before


def test_convert_and_inspect_take_volumes(run: Any) -> None:
    from orienteer.volume.opening import write_volume

    rng = np.random.default_rng(1)
    write_volume("density.mrc", orienteer.Volume(rng.random((8, 9, 10), np.float32), voxel_size=2.5))
    assert run("convert", "density.mrc", "density.h5").status == 0
    report = run("inspect", "density.h5", "--json").json
    assert report["shape"] == [8, 9, 10]
    assert Path(report["picture"]).exists()


def test_inspect_describes_a_structure(run: Any) -> None:
    lines = [
        f"ATOM  {i:5d}  CA  ALA A{i:4d}    {3.8 * i:8.3f}{0:8.3f}{0:8.3f}  1.00 10.00           C"
        for i in range(1, 9)
    ]
    Path("helix.txt").write_text("\n".join([*lines, "END\n"]))
    assert run("inspect", "helix.txt", "--json").json["atoms"] == 8


def test_demo_ends_by_naming_the_file_to_open(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from orienteer.cli import demo

    smaller = {
        "pixels = 64": "pixels = 16",
        "edge_resolution_A = 30": "edge_resolution_A = 60",
        "frames = 1200": "frames = 60",
        "resolution_A = 30\n": "resolution_A = 60\nlevel = 3\nstarts = 1\niterations = 3\n",
        "beam_stop_radius_pixels = 2\n": "",
        "starts = 7": 'starts = 2\nschedule = "10*raar(0.87) 5*er"\nsupport_volume_A3 = 8e6',
        "replicates = 8": "replicates = 0",
    }
    for before, after in smaller.items():
        assert before in demo.SETTINGS
        monkeypatch.setattr(demo, "SETTINGS", demo.SETTINGS.replace(before, after))
    result = run("demo", "--out", "shown", "--device", "cpu")
    assert result.status == 0, result.errors
    for command in ("simulate", "reconstruct", "phase", "validate", "report"):
        assert f"$ orienteer {command} " in result.errors
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("Open")
    assert Path(last.split()[1]).read_text().startswith("<!DOCTYPE html>")
    again = run("demo", "--out", "shown", "--device", "cpu", "--json")
    assert again.json["validation"]["statement"]
    assert run("demo", "--out", "shown", "--seed", "2").status == 1  # the folder holds another one
    Path("file").write_text("")
    assert run("demo", "--out", "file").status == 1


def test_settings_prints_a_file_that_loads_and_describes_everything(run: Any) -> None:
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    assert run("settings", "--out", "all.toml").status == 0
    assert load_settings(Settings, Path("all.toml")) == Settings()
    assert Path("all.toml").read_text() == run("settings").output
    keys = {(row["section"], row["key"]) for row in run("settings", "--json").json}
    assert ("simulate", "frames") in keys


def test_settings_shows_the_sections_that_are_asked_for(run: Any) -> None:
    rows = run("settings", "emc", "phase", "--json").json
    assert {row["section"] for row in rows} == {"emc", "phase"}
    assert run("settings", "emc").output.startswith("[emc]\n")
    result = run("settings", "ecm")
    assert result.status == 2
    assert "there is no section 'ecm'" in result.errors


def test_what_a_format_cannot_keep_is_said_by_simulate_too(run: Any) -> None:
    result = run("simulate", "sphere", "--frames", 2, "--set", "detector.pixels=8", "--out", "photons.emc")
    assert result.status == 0
    assert "not kept" in result.errors


def test_relative_paths_in_settings_count_from_the_current_folder(run: Any) -> None:
    Path("elsewhere").mkdir()
    Path("fluences.txt").write_text("1\n2\n")
    Path("elsewhere/run.toml").write_text('[simulate]\nfluence_file = "fluences.txt"\n')
    line = ("simulate", "sphere", "--overwrite", "--frames", 2, "--set", "detector.pixels=8", "--settings")
    assert run(*line, "elsewhere/run.toml").status == 0
    Path("fluences.txt").rename("elsewhere/fluences.txt")
    told = run(*line, "elsewhere/run.toml")
    assert told.status == 1
    assert "fluences.txt" in told.errors
