"""The charts of a report from the log and the frames."""

from xml.etree import ElementTree

import numpy as np
import pytest

from orienteer.report.chart import draw_chart, has_something
from orienteer.report.curves import histogram, radial_charts, step_charts

STEPS = [
    {"iteration": 1, "log_likelihood": -9.0, "change": 0.5, "inverse_temperature": 0.1, "stage": 1},
    {"iteration": 2, "log_likelihood": None, "change": 0.1, "inverse_temperature": 0.0, "stage": 1},
    {"iteration": 3, "log_likelihood": -7.0, "change": 0.2, "inverse_temperature": 0.5, "stage": 2},
]


def test_the_numbers_of_the_log_are_drawn() -> None:
    charts = {chart.name: chart for chart in step_charts(STEPS)}
    assert list(charts) == ["log-likelihood", "change", "temperature", "resolution", "poses"]
    assert charts["log-likelihood"].curves[0].y == [-9.0, None, -7.0]
    assert charts["temperature"].curves[0].y == [10.0, None, 2.0]
    assert [guide.value for guide in charts["change"].guides] == [2.5]  # where the stage began
    assert not has_something(charts["poses"])
    for chart in charts.values():
        ElementTree.fromstring(draw_chart(chart))


@pytest.mark.parametrize("nonsense", ["x", [1], {"a": 1}, True, float("inf")])
def test_a_log_of_nonsense_draws_nothing_and_breaks_nothing(nonsense: object) -> None:
    names = ("log_likelihood", "change", "inverse_temperature", "agrees_to_A", "perplexity", "n_rotations")
    step = {"iteration": 5, "sentinel_agreement_deg": 3.0, **dict.fromkeys(names, nonsense)}
    for chart in [*step_charts([step]), *radial_charts({"q_inv_A": nonsense, "intensity": nonsense}, None)]:
        ElementTree.fromstring(draw_chart(chart))


def test_a_histogram_counts_every_frame_once() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.gamma(20.0, 50.0, 3000), rng.lognormal(0, 2, 3000)):
        chart = histogram("photons", "Photons", "photons", values)
        assert chart.bars is not None
        edges, counts = chart.bars
        assert sum(counts) == 3000
        assert len(edges) == len(counts) + 1
        assert chart.guides[0].value == pytest.approx(np.median(values))
    assert chart.log_x
    assert not has_something(histogram("same", "Same", "x", np.ones(5)))
    assert not has_something(histogram("none", "None", "x", np.zeros(0)))


def test_frames_without_photons_are_counted_and_do_not_stretch_the_axis() -> None:
    values = np.concatenate(
        [np.zeros(20), np.full(10, 1e-5), np.random.default_rng(1).gamma(20.0, 0.05, 970)]
    )
    chart = histogram("fluence", "Fluence", "fluence", values)
    assert chart.bars is not None
    assert not chart.log_x
    assert sum(chart.bars[1]) == 1000
    wide = histogram("photons", "Photons", "photons", np.append(np.geomspace(1, 1e4, 500), np.zeros(7)))
    assert wide.log_x
    assert "7 zeros not shown" in wide.x_label


def test_another_random_start_is_marked() -> None:
    steps = [{**step, "stage": 1, "start": start} for step, start in zip(STEPS, (1, 2, 2), strict=True)]
    assert [guide.value for guide in step_charts(steps)[0].guides] == [1.5]
