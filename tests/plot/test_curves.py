"""Curves of a reconstruction: every number at its iteration, gaps where there is none."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.plot.curves import draw_curves, draw_fluence, draw_radial, set_log_scale


def steps(n: int) -> list[dict[str, Any]]:
    return [
        {
            "iteration": i + 1,
            "log_likelihood": -100.0 + i,
            "change": 0.5**i,
            "inverse_temperature": 0.1 * (i + 1),
            "grid_level": 4 if i < 3 else 6,
            "resolution_A": 30.0 - i,
            "agrees_to_A": None if i < 1 else 40.0 - i,
            "perplexity": 9.0,
            "n_rotations": 3240,
            "sentinel_agreement_deg": None if i < 2 else 5.0 / i,
        }
        for i in range(n)
    ]


def test_each_curve_shows_its_numbers() -> None:
    axes = Figure().subplots(1, 5)
    draw_curves(axes, steps(6))
    likelihood, change, temperature, resolution, poses = (panel.lines[0].get_xydata() for panel in axes)
    np.testing.assert_array_equal(likelihood[:, 0], np.arange(1, 7))
    np.testing.assert_array_equal(likelihood[:, 1], np.arange(-100, -94))
    np.testing.assert_allclose(change[:, 1], 0.5 ** np.arange(6))
    np.testing.assert_allclose(temperature[:, 1], 10 / np.arange(1, 7))
    np.testing.assert_array_equal(resolution, [[i + 1, 40 - i] for i in range(1, 6)])
    np.testing.assert_array_equal(axes[3].lines[-1].get_ydata(), 30 - np.arange(6))
    np.testing.assert_array_equal(poses, [[i + 1, 5.0 / i] for i in range(2, 6)])
    assert [panel.get_yscale() for panel in axes] == ["linear", "log", "log", "linear", "linear"]


def test_a_finer_grid_is_marked_between_the_iterations() -> None:
    axes = Figure().subplots(1, 5)
    draw_curves(axes, steps(6))
    assert [line.get_xdata()[0] for line in axes[0].lines[1:]] == [3.5]


def test_what_is_not_known_yet_is_said() -> None:
    axes = Figure().subplots(1, 5)
    draw_curves(axes, steps(2))
    assert [text.get_text() for text in axes[4].texts] == ["nothing yet"]
    assert not axes[0].texts
    axes = Figure().subplots(1, 5)
    draw_curves(axes, [step | {"perplexity": 2000.0} for step in steps(6)])  # no frame has a pose yet
    assert [text.get_text() for text in axes[4].texts] == ["nothing yet"]


@pytest.mark.parametrize(("low", "high"), [(1e-6, 1e6), (0.3, 40), (1, 1.1), (2e-5, 3e-3), (9.9, 10.1)])
def test_a_logarithmic_scale_has_a_few_numbers(low: float, high: float) -> None:
    axes = Figure().add_subplot()
    set_log_scale(axes, np.array([low, high]))
    ticks = axes.get_yticks()
    assert 2 <= len(ticks) <= 6
    assert ticks[-1] / ticks[0] > (high / low) ** 0.4
    assert not len(axes.get_yticks(minor=True))


def test_the_end_of_the_agreement_is_marked() -> None:
    figure = Figure()
    radial = {"q_inv_A": [0.01, 0.02], "intensity": [10.0, 1.0], "half_correlation": [0.9, 0.1]}
    draw_radial(figure.add_subplot(), radial, 66.7)
    lines = figure.axes[1].lines
    assert [line.get_xdata()[0] for line in lines if line.get_label() == "0.5 at 66.7 Å"] == [1 / 66.7]


def test_a_constant_fluence_is_said_in_words() -> None:
    axes = Figure().add_subplot()
    draw_fluence(axes, np.ones(500))
    assert not axes.patches
    assert axes.texts[0].get_text() == "all 500 frames have the same fluence"


@pytest.mark.parametrize("bare", [[], [{"iteration": 1}], [{"iteration": 1, "change": 0.0}]])
def test_a_run_that_has_hardly_begun_is_drawn(bare: list[dict[str, Any]]) -> None:
    figure = Figure()
    draw_curves(figure.subplots(1, 5), bare)
    figure.canvas.draw()


def test_radial_curves_leave_gaps_where_nothing_was_measured() -> None:
    figure = Figure()
    axes = figure.add_subplot()
    q = [0.01, 0.02, 0.03]
    draw_radial(axes, {"q_inv_A": q, "intensity": [None, 10.0, 1.0], "half_correlation": [None, 0.9, -0.1]})
    assert axes.lines[0].get_xydata().tolist() == [[0.02, 10.0], [0.03, 1.0]]
    assert figure.axes[1].lines[0].get_xydata().tolist() == [[0.02, 0.9], [0.03, -0.1]]
    figure = Figure()
    draw_radial(figure.add_subplot(), {})
    assert len(figure.axes) == 1
    figure.canvas.draw()


def test_every_fluence_is_counted_and_a_wide_spread_has_a_log_scale() -> None:
    rng = np.random.default_rng(1)
    for spread, scale, n_dark in ((0.3, "linear", 1), (2.0, "log", 0)):  # a logarithm has no place for 0
        axes = Figure().add_subplot()
        draw_fluence(axes, np.append(rng.lognormal(0, spread, 500), [np.nan, 0]))
        assert axes.get_xscale() == scale
        assert sum(bar.get_height() for bar in axes.patches) == 500 + n_dark
    axes = Figure().add_subplot()
    draw_fluence(axes, np.zeros(0))
    assert not axes.patches


def test_a_resolution_that_hardly_changes_looks_like_it() -> None:
    axes = Figure().subplots(1, 5)
    draw_curves(axes, [step | {"agrees_to_A": 50.0035, "resolution_A": 50.0} for step in steps(6)])
    low, high = axes[3].get_ylim()
    assert low < 48 < 52 < high
    axes[3].figure.canvas.draw()
    assert axes[3].yaxis.get_offset_text().get_text() == ""


def test_axes_without_a_curve_have_no_names() -> None:
    axes = Figure().add_subplot()
    draw_fluence(axes, np.ones(500))
    assert not axes.get_xlabel()
    assert not axes.get_ylabel()
