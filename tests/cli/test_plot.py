"""``orienteer plot``: a picture of a run at any time, and never in the place of data."""

from pathlib import Path
from typing import Any

import pytest

import orienteer
from orienteer.run.run import Run
from orienteer.run.signals import RunStopped


def test_a_run_is_drawn_before_its_first_step_and_at_its_end(run: Any, frames: Path, fake: Any) -> None:
    begun = Run.create("runs", orienteer.open(frames))
    drawn = run("plot", "runs")
    assert drawn.status == 0, drawn.errors
    assert Path("runs.png").read_bytes().startswith(b"\x89PNG")
    assert drawn.output.split() == ["Open", "runs.png"]
    list(begun.iterate())
    assert run("plot", "runs", "--out", "other.png").status == 0
    assert Path("other.png").stat().st_size > Path("runs.png").stat().st_size


def test_json_tells_where_a_stopped_run_stands(run: Any, frames: Path, fake: Any) -> None:
    fake.stop_after = 2
    with pytest.raises(RunStopped):
        list(Run.create("runs", orienteer.open(frames), seed=3).iterate())
    report = run("plot", "runs", "--json").json
    assert report["picture"] == "runs.png"
    assert (report["iteration"], report["finished"], report["seed"]) == (2, False, 3)
    assert report["seconds"] == pytest.approx(0.02)
    assert "radial" not in report
    assert [Path(name).name for name in report["files"]] == [
        "intensity.mrc", "intensity.h5", "orientations.h5",
    ]  # fmt: skip


def test_the_symmetry_of_the_particle_fills_the_map(
    run: Any, frames: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orienteer.plot import run as drawing

    groups = []
    draw = drawing.draw_coverage
    monkeypatch.setattr(drawing, "draw_coverage", lambda *given: (groups.append(given[3]), draw(*given)))
    settings = fake.settings(symmetry="O")
    list(Run.create("runs", orienteer.open(frames), settings).iterate())
    assert run("plot", "runs").status == 0
    assert groups == ["O"]


@pytest.mark.parametrize("place", ["absent", "."])
def test_what_is_no_run_is_refused_in_a_sentence(run: Any, frames: Path, place: str) -> None:
    result = run("plot", place)
    assert result.status == 1
    assert "Traceback" not in result.errors
    assert len(result.errors.strip().splitlines()) <= 2


def test_a_picture_never_replaces_data(run: Any, frames: Path, fake: Any) -> None:
    list(Run.create("r", orienteer.open(frames)).iterate())
    before = frames.read_bytes()
    result = run("plot", "r", "--out", frames)
    assert result.status == 1
    assert ".png" in result.errors
    assert "--picture" not in result.errors
    assert frames.read_bytes() == before


def test_plot_and_inspect_point_to_each_other(run: Any, frames: Path, fake: Any) -> None:
    Run.create("runs", orienteer.open(frames))
    assert "orienteer inspect frames.h5" in run("plot", frames).errors
    told = run("inspect", "runs")
    assert told.status == 1
    assert "orienteer plot runs" in told.errors
