"""The numbers of docs/explanation/scaling.md are those of the model and of the kept measurements."""

import json
import re
import runpy
from pathlib import Path

import pytest

from orienteer.plot.scaling import plot_largest
from orienteer.scaling.curves import largest, strong, weak
from orienteer.scaling.machines import MACHINES
from orienteer.scaling.prediction import Prediction
from orienteer.scaling.problem import Problem
from orienteer.scaling.published import EKEBERG, SPINIFEL_START

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "scaling.md").read_text()
H200, RANKS = MACHINES["h200"], (1, 8, 64, 512, 4096)
SMALL, FINE = (
    Problem(10_000, pixels, 86_520, edge, 0.2, n_halves=1) for pixels, edge in ((4096, 95), (16_384, 187))
)
LARGE = Problem(1_000_000, 16_384, 1_097_880, 187, 0.2)


def numbers(row: str) -> list[float]:
    """What the cells of the first row that begins so say."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {row} |") and "1x" not in line)
    return [float(cell.split()[0]) for cell in line.split("|")[2:-1] if re.match(r" *[\d.]+", cell)]


def assert_told(row: str, curve: list[Prediction]) -> None:
    told = numbers(row)[-len(curve) :]
    assert told == pytest.approx([each.seconds for each in curve], rel=0.06), row


def test_strong_curves() -> None:
    assert_told("10 000 frames of 4 096 pixels, 86 520 orientations", strong(SMALL, H200, RANKS[1:]))
    assert_told("10 000 frames of 16 384 pixels, 86 520 orientations", strong(FINE, H200, RANKS[1:]))
    assert_told("1 000 000 frames of 16 384 pixels, 1 097 880 orientations", strong(LARGE, H200, RANKS[1:]))
    for row, poses in (
        ("131 072 images of 16 384 pixels, 86 520 orientations", 86_520),
        ("the same, 1 048 576 orientations", 1_048_576),
    ):
        assert_told(row, strong(Problem(131_072, 16_384, poses, 151, 0.2, method="mtip"), H200, RANKS))


def test_weak_curves() -> None:
    for row, problem in (
        ("EMC, 10 000 frames of 4 096 pixels, 86 520 orientations", Problem(10_000, 4096, 86_520, 95, 0.2)),
        ("EMC, 10 000 frames of 16 384 pixels, 1 097 880 orientations", LARGE.with_frames(10_000)),
        (
            "M-TIP, 2 500 frames of 16 384 pixels, 1 048 576 orientations",
            Problem(2_500, 16_384, 1_048_576, 151, 0.2, method="mtip"),
        ),
    ):
        assert_told(row, weak(problem, H200, RANKS))


@pytest.mark.parametrize("nodes", [1, 8, 64, 512])
def test_the_largest_data_sets(nodes: int) -> None:
    told = [largest(problem, H200, [8 * nodes])[0] for problem in (SMALL, LARGE)]
    expected = [number for each in told for number in (each.problem.n_frames / 1e6, each.seconds)]
    assert numbers(str(nodes)) == pytest.approx(expected, rel=0.06)


def test_the_picture_of_the_largest_data_sets_shows_what_the_table_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    curves = runpy.run_path(str(ROOT / "bench" / "scaling_pictures.py"))["largest_curves"]()
    frames, seconds = (axes.get_lines() for axes in plot_largest(curves).axes)
    for nodes in (1, 8, 64, 512):
        at = list(frames[0].get_xdata()).index(nodes)
        drawn = [number for of_curve in zip(frames, seconds, strict=True) for number in (
            of_curve[0].get_ydata()[at] / 1e6, of_curve[1].get_ydata()[at]
        )]  # fmt: skip
        assert numbers(str(nodes)) == pytest.approx(drawn, rel=0.06)


def test_published_figures() -> None:
    for row, facts in zip(("4 096", "16 384"), EKEBERG, strict=True):
        assert numbers(f"10 000 frames of {row} pixels, 86 520 orientations")[0] == facts.seconds[-1]
    for seconds in SPINIFEL_START.values():
        assert f"{seconds:.0f}" in PAGE


def test_what_was_measured_here() -> None:
    for run in json.loads((ROOT / "bench" / "results" / "scaling_weak_cpu.json").read_text())["runs"]:
        row = next(
            line for line in PAGE.splitlines() if line.startswith(f"| {run['ranks']} | {run['mesh']} |")
        )
        told = [float(cell.split()[0]) for cell in row.split("|")[3:-1]]
        measured = [run["work_seconds"], run["model_work_seconds"]]
        measured += [run["sent_bytes"] / 1e6, run["model_sent_bytes"] / 1e6]
        assert told == pytest.approx(measured, rel=0.04)


def test_the_pictures_are_there() -> None:
    for name in re.findall(r"\]\((pictures/\w+\.png)\)", PAGE):
        assert (ROOT / "docs" / "explanation" / name).stat().st_size > 10_000
