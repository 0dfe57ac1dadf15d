"""``orienteer compare``: any two files that can be compared, in words and as JSON."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.compare.comparison import compare as compare_volumes
from orienteer.compare.structure_density import density_of, intensity_of
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import canonical, from_axis_angle, inverse
from orienteer.particle.named_bodies import random_blobs
from orienteer.particle.opening import open_structure
from orienteer.run.run import Run
from orienteer.volume.opening import open_volume, write_volume
from orienteer.volume.volume import Volume

TURN = from_axis_angle([1, 2, 3], 77)


@pytest.fixture
def files(run: Any) -> Path:
    """A structure, and density and intensity of it turned and mirrored, in the current folder."""
    lines = []
    for i in range(90):
        x, y, z = 20 * math.cos(i / 5), 15 * math.sin(i / 5), i / 2 - 22.5
        element = "C" if i < 60 else "S"
        place = f"{x:8.3f}{y:8.3f}{z:8.3f}"
        lines.append(
            f"ATOM  {i + 1:5d}  {element:<3s} ALA A{i + 1:4d}    {place}  1.00 90.00          {element:>2s}"
        )
    with gzip.open("particle.data", "wt") as file:  # the content decides, not the name
        file.write("\n".join([*lines, "END", ""]))
    body = open_structure("particle.data").rotated(TURN)
    density = density_of(body, 25, 4.0)
    write_volume("density.mrc", density)
    write_volume("mirrored.h5", density.with_values(density.values[::-1, ::-1, ::-1]))
    write_volume("intensity.h5", intensity_of(body, 25, 0.004))
    return Path()


def test_a_density_and_a_structure_in_json(run: Any, files: Path) -> None:
    result = run(
        "compare", "mirrored.h5", "particle.data", "--json", "--out", "both.png", "--aligned", "turned.mrc"
    )
    assert result.status == 0, result.output + result.errors
    found = result.json
    assert found["hand"] == -1
    assert angular_distance_deg(found["rotation"], TURN) < 0.5
    assert found["correlation"] > 0.99
    assert found["shift_A"] == pytest.approx([0, 0, 0], abs=0.3)
    assert found["criterion"] == "0.5"
    assert found["resolution_A"] == pytest.approx(25 * 4 / 12, rel=0.01)
    assert len(found["curve"]["q_inv_A"]) == len(found["curve"]["correlation"])
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")
    turned, reference = open_volume("turned.mrc"), open_volume("mirrored.h5")
    assert turned.shape == reference.shape
    assert np.corrcoef(turned.values.ravel(), reference.values.ravel())[0, 1] > 0.99


def test_two_densities_in_words(run: Any, files: Path) -> None:
    result = run("compare", "density.mrc", "mirrored.h5", "--mask", "auto", "--criterion", "half-bit")
    assert result.status == 0, result.errors
    assert "mirrored; the other hand correlates" in result.output
    assert "half-bit" in result.output
    assert "The mask holds" in result.errors


def test_intensities_tell_no_hand(run: Any, files: Path) -> None:
    found = run("compare", "intensity.h5", "particle.data", "--json").json
    assert found["kind"] == "intensities"
    assert found["hand"] is None
    assert found["shift_A"] is None
    assert found["correlation"] > 0.9
    assert run("compare", "intensity.h5", "intensity.h5").status == 0


def test_a_run_stands_for_its_density_or_else_its_intensity(
    run: Any, frames: Path, files: Path, fake: Any
) -> None:
    Run.create("runs", orienteer.open(frames))
    assert "no density and no intensity" in run("compare", "runs", "density.mrc").errors
    write_volume("runs/intensity.h5", open_volume("intensity.h5"))
    assert run("compare", "runs", "intensity.h5", "--json").json["kind"] == "intensities"
    write_volume("runs/density.mrc", open_volume("density.mrc"))
    assert run("compare", "runs", "density.mrc", "--json").json["kind"] == "densities"
    Path("other").mkdir()
    assert "folder without a run" in run("compare", "other", "density.mrc").errors


BODY = "[particle]\ndiameter_A = 90\nn_blobs = 9\nseed = 4\n"


def test_a_built_in_body_is_compared_by_its_name_as_it_is_simulated(run: Any) -> None:
    body = random_blobs(90.0, 9, 4)
    write_volume("density.mrc", density_of(body.rotated(TURN), 30, 4.0))
    Path("body.toml").write_text(BODY)
    found = run("compare", "blobs", "density.mrc", "--settings", "body.toml", "--json").json
    assert found["correlation"] > 0.99
    assert angular_distance_deg(found["rotation"], canonical(inverse(TURN))) < 0.5
    other = run("compare", "blobs", "density.mrc", "--settings", "body.toml", "--set", "particle.seed=5")
    assert other.status == 0
    assert "The curve stays above" not in other.output


def test_the_diameter_of_a_built_in_body_must_be_given(run: Any, files: Path) -> None:
    told = run("compare", "two-domain", "density.mrc")
    assert told.status == 2
    assert "'two-domain' is a built-in body, whose diameter is not given" in told.errors
    assert "--set particle.diameter_A=240" in told.errors
    assert run("compare", "two-domain", "density.mrc", "--set", "particle.diameter_A=90").status == 0


def test_a_file_comes_before_a_built_in_body_of_its_name(run: Any, files: Path) -> None:
    write_volume("density.h5", open_volume("density.mrc"))
    Path("density.h5").rename("virus")
    assert run("compare", "virus", "density.mrc", "--json").json["correlation"] > 0.99


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("two-domian", "Did you mean the built-in body 'two-domain'?"),
        ("nothing", "a built-in body: virus, icosahedron"),
        ("densty.mrc", "Did you mean density.mrc?"),
    ],
)
def test_a_name_of_nothing_is_told_with_what_there_is(run: Any, files: Path, name: str, hint: str) -> None:
    told = run("compare", name, "density.mrc")
    assert told.status == 1
    assert f"{name}: does not exist." in told.errors
    assert hint in " ".join(told.errors.split())


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["density.mrc", "absent.mrc"], 1, "absent.mrc"),
        (["density.mrc", "intensity.h5"], 1, "the second an intensity"),
        (["particle.data", "particle.data"], 1, "neither of the two is a volume"),
        (["density.mrc", "density.mrc", "--criterion", "good"], 2, "no criterion"),
        (["density.mrc", "density.mrc", "--aligned", "mirrored.h5"], 1, "not overwritten"),
        (["density.mrc", "density.mrc", "--aligned", "turned.txt"], 1, "does not end like a volume file"),
        (["density.mrc", "density.mrc", "--out", "density.mrc"], 1, "does not end in .png"),
        (["density.mrc", "density.mrc", "--aligned", "nowhere/x.mrc"], 1, "there is no folder 'nowhere'"),
        (["density.mrc", "density.mrc", "--out", "nowhere/x.png"], 1, "there is no folder 'nowhere'"),
        (["density.mrc", "slice.mrc"], 1, "a slice of 25 x 25 x 1 voxels"),
        (["density.mrc", "empty.mrc"], 1, "same everywhere"),
        (["intensity.h5", "intensity.h5", "--mask", "auto"], 1, "for densities"),
        (["density.mrc", "density.mrc", "--symmetry", "Q9"], 2, "Q9"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    run: Any, files: Path, arguments: list[str], status: int, words: str
) -> None:
    write_volume("empty.mrc", Volume(np.zeros((25, 25, 25)), 4.0))
    write_volume("slice.mrc", Volume(open_volume("density.mrc").values[:, :, 12:13], 4.0))
    result = run("compare", *arguments)
    assert result.status == status
    assert words in result.errors
    assert "Traceback" not in result.errors
    assert len(result.errors.strip().splitlines()) <= 2


def test_a_folder_that_is_not_there_is_told_before_any_work(
    run: Any, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.compare.comparison.compare", lambda *_, **__: pytest.fail("compared"))
    assert run("compare", "density.mrc", "density.mrc", "--aligned", "nowhere/x.mrc").status == 1


def test_frames_are_no_volume(run: Any, frames: Path, files: Path) -> None:
    assert "orienteer inspect" in run("compare", frames, "density.mrc").errors


@pytest.mark.parametrize("option", [("--out", "no/both.png"), ("--aligned", "no/turned.mrc")])
def test_the_numbers_come_even_when_a_file_cannot_be_written(
    run: Any, files: Path, option: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("no").mkdir()

    def compare_and_lose_the_folder(*given: Any, **more: Any) -> Any:
        Path("no").rmdir()
        return compare_volumes(*given, **more)

    monkeypatch.setattr("orienteer.compare.comparison.compare", compare_and_lose_the_folder)
    told = run("compare", "density.mrc", "density.mrc", *option, "--json")
    assert told.status == 1
    assert told.json["correlation"] == pytest.approx(1.0, abs=1e-3)
    assert option[1] in told.json["error"]
