"""Curves of the performance model, drawn."""

from pathlib import Path

from orienteer.plot.scaling import plot_largest, plot_strong, plot_weak
from orienteer.scaling.curves import largest_frames, strong, weak
from orienteer.scaling.machines import MACHINES
from orienteer.scaling.problem import Problem

H200, RANKS = MACHINES["h200"], (1, 8, 64)
EMC = Problem(10_000, 4096, 86_520, 95)


def test_curves_stand_beside_what_was_measured_and_published(tmp_path: Path) -> None:
    curve = strong(EMC, H200, RANKS)
    figure = plot_strong({"one": curve}, {"two": strong(EMC, H200, RANKS)}, {"one": 0.07})
    figure.savefig(tmp_path / "strong.png")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert list(lines["one"].get_ydata()) == [each.seconds for each in curve]
    assert any("published" in label for label in lines)


def test_weak_and_largest_curves_are_drawn(tmp_path: Path) -> None:
    runs = [
        {"ranks": n, "mesh": mesh, "work_seconds": 0.4, "model_work_seconds": 0.5}
        for n in (1, 2) for mesh in dict.fromkeys((f"1x{n}", f"{n}x1"))
    ]  # fmt: skip
    weakly = plot_weak({"one": weak(EMC, H200, RANKS)}, runs, 2)
    largest = plot_largest({"one": [largest_frames(EMC, H200, n) for n in (8, 16)]})
    for name, figure in (("weak", weakly), ("largest", largest)):
        figure.savefig(tmp_path / f"{name}.png")
    measured = {line.get_label(): list(line.get_ydata()) for line in weakly.axes[0].get_lines()}
    assert measured["frames shared, measured"] == [0.4, 0.4]
