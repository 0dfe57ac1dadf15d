"""``orienteer report``: a page beside the run or in a folder to give away."""

from pathlib import Path
from typing import Any

import pytest

import orienteer
from orienteer.run.run import Run


def test_a_page_is_written_at_any_time(run: Any, frames: Path, fake: Any) -> None:
    begun = Run.create("runs", orienteer.open(frames))
    first = run("report", "runs")
    assert first.status == 0, first.errors
    assert first.output.split() == ["Open", "runs/report.html"]
    assert "has not been started" in Path("runs/report.html").read_text()
    list(begun.iterate())
    assert run("report", "runs").status == 0
    assert "The intensity no longer changes." in Path("runs/report.html").read_text()


def test_json_names_the_files(run: Any, frames: Path, fake: Any) -> None:
    list(Run.create("runs", orienteer.open(frames)).iterate())
    told = run("report", "runs", "--out", "given", "--json").json
    assert told == {"report": "given/report.html", "chimerax": None, "remarks": []}
    assert Path("given/intensity.mrc").read_bytes() == Path("runs/intensity.mrc").read_bytes()
    assert not Path("runs/report.html").exists()


def test_damage_is_told_on_the_console_too(run: Any, frames: Path, fake: Any) -> None:
    list(Run.create("runs", orienteer.open(frames)).iterate())
    Path("runs/phasing.json").write_text("{")
    result = run("report", "runs")
    assert result.status == 0
    assert "note runs/phasing.json: is damaged" in result.errors
    assert any("phasing.json" in remark for remark in run("report", "runs", "--json").json["remarks"])


@pytest.mark.parametrize("place", ["absent", "."])
def test_what_is_no_run_is_refused_in_a_sentence(run: Any, frames: Path, place: str) -> None:
    result = run("report", place)
    assert result.status == 1
    assert "Traceback" not in result.errors
    assert len(result.errors.strip().splitlines()) <= 2


def test_a_run_that_cannot_be_written_to_asks_for_another_folder(run: Any, frames: Path, fake: Any) -> None:
    list(Run.create("runs", orienteer.open(frames)).iterate())
    Path("runs/report.html").mkdir()
    result = run("report", "runs")
    assert result.status == 1
    assert "--out" in result.errors
    assert run("report", "runs", "--out", "elsewhere").status == 0
