"""``orienteer weather``: a picture and a few sentences about the ranks of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orienteer
from orienteer.run.run import Run


def test_the_weather_of_a_run_of_one_process_is_drawn(run: Any, frames: Path, fake: Any) -> None:
    list(Run.create("runs", orienteer.open(frames)).iterate())
    drawn = run("weather", "runs")
    assert drawn.status == 0, drawn.errors
    assert Path("runs_weather.png").read_bytes().startswith(b"\x89PNG")
    assert "1 on 1 machine" in drawn.output


def test_trouble_is_named_in_words_and_in_json(
    run: Any, tmp_path: Path, write_logs: Callable[..., None]
) -> None:
    write_logs(tmp_path / "trouble", slow={5: 3.0}, stall=(2, 8.0, (1, 2)))
    said = run("weather", str(tmp_path / "trouble"), "--out", "w.svg")
    assert "Rank 5 on node01 is slow" in said.output
    assert "2 of 8 ranks on node00 stood still" in said.output
    assert Path("w.svg").read_text().startswith("<?xml")
    report = run("weather", str(tmp_path / "trouble"), "--out", "w.png", "--json").json
    assert [each["kind"] for each in report["findings"]] == ["slow rank", "stall", "waiting"]
    assert report["by_rank"][5]["relative_rate"] < 0.4
    assert (report["ranks"], report["hosts"], report["iterations"]) == (8, 2, 6)


def test_a_folder_without_a_run_and_a_name_that_is_no_picture_are_refused(
    run: Any, tmp_path: Path, write_logs: Callable[..., None]
) -> None:
    assert "no log of stages" in run("weather", str(tmp_path)).errors
    write_logs(tmp_path / "fair", n_ranks=1, n_iterations=1)
    assert ".png or .svg" in run("weather", str(tmp_path / "fair"), "--out", "w.h5").errors
