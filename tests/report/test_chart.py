"""Charts: every point at its place, texts as texts, and the same numbers as CSV."""

import csv
import io
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orienteer.report.chart import Chart, Curve, Guide, chart_table, draw_chart, has_something
from orienteer.report.svg import Scale, linear_ticks, standalone

SVG = "{http://www.w3.org/2000/svg}"
WAVE = Chart("wave", "A < wave", "x", "y", [Curve("", [0, 1, 2, 3], [1.0, None, 3.0, 4.0])])


def texts(chart: Chart) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(draw_chart(chart)).iter(f"{SVG}text")]


def paths(chart: Chart) -> list[str]:
    """The curves: what is drawn inside of the frame."""
    root = ElementTree.fromstring(draw_chart(chart))
    return [
        node.get("d", "")
        for frame in root.iter(f"{SVG}svg")
        if frame is not root
        for node in frame.iter(f"{SVG}path")
    ]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
@example(100.091796875, 1e-6, 4)
def test_ticks_are_few_round_and_inside(low: float, width: float, most: int) -> None:
    high = low + width
    if high - low < 1e-9 * abs(low):
        return
    ticks = linear_ticks(low, high, most)
    assert 1 <= len(ticks) <= most
    slack = 1e-6 * width
    assert low - slack <= min(ticks)
    assert max(ticks) <= high + slack
    steps = np.diff(ticks)
    if len(steps):
        np.testing.assert_allclose(steps, steps[0], rtol=1e-3)


@given(st.floats(0.01, 1e6), st.floats(1.01, 1e6), st.floats(0, 1))
def test_scales_turn_values_into_places_evenly(low: float, factor: float, share: float) -> None:
    high = low * factor
    assert Scale(low, high, 10, 110)(low + share * (high - low)) == pytest.approx(10 + 100 * share, abs=1e-6)
    logarithmic = Scale(low, high, 10, 110, logarithmic=True)
    assert logarithmic(low * factor**share) == pytest.approx(10 + 100 * share, abs=1e-6)


def test_points_lie_where_the_axes_say_and_a_missing_one_leaves_a_gap() -> None:
    (path,) = paths(WAVE)
    assert path.count("M") == 2
    points = [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
    (x0, y0), (x2, y2), (x3, y3) = points
    assert (x2 - x0) == pytest.approx(2 * (x3 - x2), abs=0.2)
    assert (y0 - y2) == pytest.approx(2 * (y2 - y3), abs=0.2)  # y counts downwards in a drawing
    assert y0 > y2 > y3


def test_texts_are_texts_and_escaped() -> None:
    assert {"A < wave", "x", "y"} <= set(texts(WAVE))


def test_resolutions_stand_above_q() -> None:
    chart = Chart("fsc", "FSC", "q (1/Å)", "FSC", [Curve("", [0.0, 0.1], [1.0, 0.0])], resolution_above=True)
    shown = texts(chart)
    assert "resolution (Å)" in shown
    assert {"50", "25", "10"} <= set(shown)  # above 0.02, 0.04 and 0.1


def test_a_logarithmic_axis_leaves_out_what_has_no_logarithm() -> None:
    chart = Chart("change", "Change", "x", "y", [Curve("", [1, 2, 3], [0.1, 0.0, 0.001])], log_y=True)
    (path,) = paths(chart)
    assert path.count("M") == 2
    assert has_something(chart)
    assert not has_something(Chart("none", "None", "x", "y", [Curve("", [1], [-1.0])], log_y=True))


@pytest.mark.parametrize("values", [[], [None], [math.nan, math.inf], [3.0], [2.0, 2.0], [0.0, 0.0], [-5.0]])
@pytest.mark.parametrize("log_y", [False, True])
def test_any_values_can_be_drawn(values: list[float | None], log_y: bool) -> None:
    chart = Chart(
        "any", "Any", "x", "y", [Curve("a", list(range(len(values))), values), Curve("b", [], [])],
        [Guide(0.5, "half"), Guide(1, vertical=True)], log_y=log_y,
    )  # fmt: skip
    drawn = draw_chart(chart)
    ElementTree.fromstring(drawn)
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_bars_have_the_heights_of_their_counts() -> None:
    chart = Chart("bars", "Bars", "x", "frames", bars=([0.0, 1.0, 2.0, 3.0], [2, 0, 4]))
    (path,) = paths(chart)
    tops = [float(top) for top in re.findall(r"V([\d.]+)H", path)]
    floor = float(re.findall(r"M[\d.]+ ([\d.]+)V", path)[0])
    assert len(tops) == 2
    assert (floor - tops[1]) == pytest.approx(2 * (floor - tops[0]), abs=0.2)


def test_a_table_holds_the_numbers_of_the_chart() -> None:
    curves = [
        Curve("one", [1, 2], [0.5, None]),
        Curve("two, or so", [1, 2], [3.25, 4.0]),
        Curve("", [7], [8.0]),
    ]
    rows = list(csv.reader(io.StringIO(chart_table(Chart("t", "T", "q", "y", curves)))))
    assert rows == [["q", "one", "two, or so"], ["1", "0.5", "3.25"], ["2", "", "4"], ["q", "y"], ["7", "8"]]


def test_a_drawing_of_its_own_needs_no_page() -> None:
    chart = Chart("two", "Two", "x", "y", [Curve("a", [0, 1], [0, 1]), Curve("b", [0, 1], [1, 0], 2)])
    file = standalone(draw_chart(chart))
    root = ElementTree.fromstring(file.encode())
    assert root.tag == f"{SVG}svg"
    assert "var(" not in file
    assert "#0b5fa5" in file
    assert "http" not in file.replace("http://www.w3.org/2000/svg", "")
