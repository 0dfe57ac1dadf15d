"""The picture of a comparison shows the curve, the threshold and where they cross."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.compare.comparison import Comparison
from orienteer.compare.criteria import resolution_at, threshold_curve
from orienteer.compare.fsc import Fsc
from orienteer.compare.phase_randomisation import MaskedFsc
from orienteer.plot.fsc import draw_fsc, draw_threshold, plot_comparison, plot_validation
from orienteer.volume.volume import Volume

Q = np.arange(9) / 80
CURVE = Fsc(Q, np.array([1, 1, 0.98, 0.9, 0.7, 0.4, 0.1, -0.1, 0.0]), np.full(9, 100), 5.0)


def comparison(masked: MaskedFsc | None = None) -> Comparison:
    volume = Volume(np.random.default_rng(1).random((9, 9, 9)), 5.0)
    resolution = resolution_at(CURVE, "0.5")
    return Comparison(
        "densities", 0.9, np.array([1.0, 0, 0, 0]), -1, np.zeros(3), 0.5, CURVE, "0.5",
        threshold_curve(CURVE, "0.5"), resolution, {"0.5": resolution}, masked, volume, volume, (),
    )  # fmt: skip


def test_the_curve_the_threshold_and_the_crossing_are_drawn() -> None:
    axes = Figure().subplots()
    draw_fsc(axes, CURVE, "curve")
    draw_threshold(axes, CURVE, threshold_curve(CURVE, "0.5"), "0.5", resolution_at(CURVE, "0.5"))
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), np.stack([Q, CURVE.correlation], axis=1)[1:])
    drop = axes.lines[-1].get_xydata()
    assert drop[0, 0] == pytest.approx(resolution_at(CURVE, "0.5").q_inv_A)
    assert drop[1, 1] == pytest.approx(0.5)
    assert axes.texts[0].get_text() == f"{resolution_at(CURVE, '0.5').resolution_A:.3g} Å"
    assert axes.get_ylim()[0] < -0.1


def test_without_a_crossing_only_the_threshold_is_drawn() -> None:
    axes = Figure().subplots()
    high = Fsc(Q, np.full(9, 0.9), CURVE.n_voxels, 5.0)
    draw_threshold(axes, high, threshold_curve(high, "0.5"), "0.5", resolution_at(high, "0.5"))
    assert len(axes.lines) == 1
    assert not axes.texts


def test_a_comparison_is_one_picture_with_all_its_curves() -> None:
    plain = plot_comparison(comparison(), "a$b.mrc", "c.mrc")
    assert len(plain.axes) == 1 + 6 + 2  # the curve, slices of both, and their scales
    masked = plot_comparison(comparison(MaskedFsc(CURVE, CURVE, CURVE, CURVE, Q[4])))
    labels = [line.get_label() for line in masked.axes[0].lines]
    assert {"unmasked", "masked", "masked, random phases", "0.5"} <= set(labels)
    assert "corrected for the mask" in labels[0]
    without = plot_comparison(comparison(MaskedFsc(CURVE, CURVE, CURVE, CURVE, None)))
    labels = [line.get_label() for line in without.axes[0].lines]
    assert "under the mask" in labels[0]
    assert "masked, random phases" not in labels
    plain.canvas.draw()


def test_a_validation_is_one_picture_of_both_halves_or_of_their_intensities() -> None:
    volume, curves = comparison().reference, MaskedFsc(CURVE, CURVE, CURVE, CURVE, Q[4])
    maps = SimpleNamespace(
        curves=curves, resolutions={"0.143": resolution_at(CURVE, "0.143")}, first=volume, second=volume
    )
    intensity = SimpleNamespace(q_inv_A=Q, correlation=CURVE.correlation)
    found: Any = SimpleNamespace(statement="Two halves agree to 12 A.", maps=maps, intensity=intensity)
    figure = plot_validation(found)
    assert figure.get_suptitle() == "Two halves agree to 12 A."
    assert len(figure.axes) == 1 + 6 + 2
    assert "0.143" in [line.get_label() for line in figure.axes[0].lines]
    found.maps = None
    alone = plot_validation(found)
    assert len(alone.axes) == 1
    alone.canvas.draw()
