"""What the user says about wavelength and distance holds, whatever the file says; a note tells of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.detector.dragonfly import write_dragonfly_text


def test_a_wavelength_other_than_that_of_the_data_is_used_and_noted(run: Any, frames: Path) -> None:
    before = run("inspect", frames, "--json", "--no-picture").json
    told = run("inspect", frames, "--json", "--no-picture", "--wavelength-A", 9)
    assert told.json["wavelength_A"] == 9
    assert told.json["resolution_edge_A"] > 2 * before["resolution_edge_A"]
    assert "9 A is used instead" in told.errors


def test_a_distance_other_than_that_of_the_data_is_used_and_noted(run: Any, frames: Path) -> None:
    distance_m = orienteer.open(frames).detector.distance_m
    told = run("convert", frames, "moved.geom", "--distance-m", 2 * distance_m)
    assert told.status == 0, told.errors
    assert f"stands at {distance_m:.6g} m" in told.errors
    moved = orienteer.open_detector("moved.geom").distance_m
    assert abs(moved / (2 * distance_m) - 1) < 1e-6
    told = run("inspect", frames, "--geometry", frames, "--distance-m", 2 * distance_m, "--no-picture")
    assert "is used instead" in told.errors
    assert run("inspect", frames, "--no-picture", "--distance-m", distance_m).errors == ""


def test_a_distance_that_cannot_be_used_is_an_error(run: Any, frames: Path) -> None:
    source = orienteer.open(frames)
    write_dragonfly_text("det.dat", source.detector)
    told = run("inspect", frames, "--geometry", "det.dat", "--distance-m", 1, "--no-picture")
    assert told.status == 1
    assert "no distance can be set" in told.errors
    run("convert", frames, "frames.npy")
    told = run("inspect", "frames.npy", "--distance-m", 1, "--no-picture")
    assert told.status == 1
    assert "--geometry" in told.errors


def test_distances_and_wavelengths_out_of_this_world_are_refused_by_name(run: Any, frames: Path) -> None:
    for flag, value in (("--distance-m", "1e300"), ("--distance-m", "nan"), ("--wavelength-A", "1e300")):
        told = run("inspect", frames, "--no-picture", flag, value)
        assert told.status == 2
        assert flag in told.errors
        assert "less than or equal to" in told.errors


@pytest.mark.parametrize(
    ("flag", "value", "meant"),
    [
        ("--distance-m", 200, "200 mm are 0.2 m."),
        ("--wavelength-A", 4600, "4600 eV are a wavelength of 2.695 A."),
    ],
)
def test_a_number_in_another_unit_is_told_in_the_right_one(
    run: Any, frames: Path, flag: str, value: float, meant: str
) -> None:
    told = run("inspect", frames, "--no-picture", flag, value)
    assert told.status == 2
    assert f"{flag} {value:g}:" in told.errors
    assert meant in told.errors


def test_a_geometry_that_shows_no_detail_of_any_particle_begins_no_run(run: Any, frames: Path) -> None:
    told = run("reconstruct", frames, "--distance-m", 50, "--wavelength-A", 1000, "--out", "run")
    assert told.status == 1
    assert "no detail of any particle" in told.errors
    assert "stands at 50 m" in told.errors
    assert not Path("run").exists()


def test_wavelengths_in_metres_are_a_problem_to_inspect_and_an_error_to_others(
    run: Any, frames: Path
) -> None:
    with orienteer.open(frames) as source:
        n, shape = len(source), source.frame_shape
        counts = np.asarray(source.read().dense()).reshape(n, *shape)
    np.savez("metres.npz", frames=counts, wavelength_A=np.full(n, 2.7e-10))
    given = ("metres.npz", "--geometry", frames)
    told = run("inspect", *given, "--no-picture")
    assert told.status == 0
    assert "2.7e-10 m are 2.7 A. Multiply the column wavelength_A by 1e10" in " ".join(told.output.split())
    for command in (("reconstruct", "--out", "run"), ("plan",), ("hits", "--out", "hits.h5")):
        told = run(command[0], *given, *command[1:])
        assert told.status == 1
        assert "Multiply the column wavelength_A by 1e10" in told.errors
        assert not Path("run").exists()
