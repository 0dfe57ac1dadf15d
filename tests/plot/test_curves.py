"""Curves of a reconstruction: every number at its iteration, gaps where there is none."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from orienteer.plot.curves import draw_curves, draw_fluence, draw_radial


def steps(n: int) -> list[dict[str, Any]]:
    return [
        {
            "iteration": i + 1,
            "log_likelihood": -100.0 + i,
            "change": 0.5**i,
            "inverse_temperature": 0.1 * (i + 1),
            "grid_level": 4 if i < 3 else 6,
            "resolution_A": 30.0 - i,
            "sentinel_agreement_deg": None if i < 2 else 5.0 / i,
        }
        for i in range(n)
    ]


def test_each_curve_shows_its_numbers() -> None:
    axes = Figure().subplots(1, 4)
    draw_curves(axes, steps(6))
    likelihood, change, temperature, resolution = (panel.lines[0].get_xydata() for panel in axes)
    np.testing.assert_array_equal(likelihood[:, 0], np.arange(1, 7))
    np.testing.assert_array_equal(likelihood[:, 1], np.arange(-100, -94))
    np.testing.assert_allclose(change[:, 1], 0.5 ** np.arange(6))
    np.testing.assert_allclose(temperature[:, 1], 10 / np.arange(1, 7))
    np.testing.assert_array_equal(resolution[:, 1], 30 - np.arange(6))
    assert [panel.get_yscale() for panel in axes] == ["linear", "log", "log", "linear"]


def test_a_finer_grid_is_marked_between_the_iterations() -> None:
    axes = Figure().subplots(1, 4)
    draw_curves(axes, steps(6))
    assert [line.get_xdata()[0] for line in axes[0].lines[1:]] == [3.5]


def test_sentinels_have_their_own_scale_only_where_there_are_some() -> None:
    for n, extra in ((2, 0), (6, 1)):
        figure = Figure()
        axes = figure.subplots(1, 4)
        draw_curves(axes, steps(n))
        assert len(figure.axes) == 4 + extra
    assert figure.axes[4].lines[0].get_xdata().tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("bare", [[], [{"iteration": 1}], [{"iteration": 1, "change": 0.0}]])
def test_a_run_that_has_hardly_begun_is_drawn(bare: list[dict[str, Any]]) -> None:
    figure = Figure()
    draw_curves(figure.subplots(1, 4), bare)
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
    for spread, scale in ((0.3, "linear"), (2.0, "log")):
        axes = Figure().add_subplot()
        draw_fluence(axes, np.append(rng.lognormal(0, spread, 500), [np.nan, 0]))
        assert axes.get_xscale() == scale
        assert sum(bar.get_height() for bar in axes.patches) == 500
    axes = Figure().add_subplot()
    draw_fluence(axes, np.zeros(0))
    assert not axes.patches
