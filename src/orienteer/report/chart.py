"""Chart: curves, bars and guides in one frame, as SVG and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.plot.curves import numbers
from orienteer.report.markup import Markup, element
from orienteer.report.svg import (
    FONT_SIZE,
    Scale,
    axes,
    drawing,
    ink,
    line,
    text,
    text_width,
    tick_words,
    window,
)

WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 40, 28, 48
_LEGEND_LINE, _TOP_AXIS = 18, 36
_SWATCH = 22
# Height of a histogram over that of its highest bar: room for the label of a guide.
_ROOM_FOR_WORDS = 1.12


@dataclass(frozen=True)
class Curve:
    """Values y over x, equal lengths; None and NaN leave a gap.

    colour : 1, 2, ...; None is the colour of the text.
    """

    label: str
    x: Sequence[float | None]
    y: Sequence[float | None]
    colour: int | None = 1
    dashed: bool = False
    dots: bool = False


@dataclass(frozen=True)
class Guide:
    """A straight line across the frame with a label."""

    value: float
    label: str = ""
    vertical: bool = False


@dataclass(frozen=True)
class Chart:
    """Everything in one frame.

    name : short, for files and ids.
    title : what it shows, above the frame.
    bars : edges (n + 1,) and heights (n,) of a histogram.
    y_range : values that the y axis covers at least; None: only those of the data.
    resolution_above : write full-period resolutions above the frame; x must be q in 1/Å.
    whole_x : x counts something, so its ticks are whole numbers.
    words : what it shows, for screen readers; by default the title.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve] = ()
    guides: Sequence[Guide] = ()
    bars: tuple[Sequence[float], Sequence[float]] | None = None
    log_x: bool = False
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    resolution_above: bool = False
    whole_x: bool = False
    words: str = ""


def has_something(chart: Chart) -> bool:
    """Whether there is anything to draw."""
    return chart.bars is not None or any(len(_seen(chart, curve)[0]) for curve in chart.curves)


def draw_chart(chart: Chart) -> Markup:
    """The chart as SVG."""
    legend = [curve for curve in chart.curves if curve.label and len(_seen(chart, curve)[0])]
    rows = _legend_rows(legend) if len(legend) > 1 else []
    top = _TOP + _LEGEND_LINE * len(rows) + (_TOP_AXIS if chart.resolution_above else 0)
    height = HEIGHT + top - _TOP
    (x_low, x_high), (y_low, y_high) = _ranges(chart)
    x = Scale(x_low, x_high, _LEFT, WIDTH - _RIGHT, chart.log_x)
    y = Scale(y_low, y_high, height - _BOTTOM, top, chart.log_y)
    parts = [text(_LEFT, 16, chart.title, font_weight="600")]
    parts += _draw_legend(rows)
    parts += axes(x, y, chart.x_label, chart.y_label, whole_x=chart.whole_x)
    if chart.resolution_above:
        parts += _resolutions(x, top)
    inside = [*_draw_bars(chart, x, y), *(_draw_curve(chart, curve, x, y) for curve in chart.curves)]
    guides = [_draw_guide(guide, x, y, above=chart.bars is not None) for guide in chart.guides]
    lines = [guide for guide, _ in guides]
    parts.append(window(x.begin, y.end, x.end - x.begin, y.begin - y.end, [*lines, *inside]))
    parts += [label for _, label in guides if label is not None]
    return drawing(WIDTH, height, chart.words or chart.title, parts)


def chart_table(chart: Chart) -> str:
    """The numbers of a chart as CSV: a column of x and one per curve; curves with another x follow below."""
    lines: list[str] = []
    if chart.bars is not None:
        edges, heights = chart.bars
        lines.append(_row([f"{chart.x_label} from", "to", chart.y_label]))
        lines += [_row([low, high, n]) for low, high, n in zip(edges, edges[1:], heights, strict=False)]
    groups: dict[tuple[float | None, ...], list[Curve]] = {}
    for curve in chart.curves:
        groups.setdefault(tuple(curve.x), []).append(curve)
    for xs, curves in groups.items():
        lines.append(_row([chart.x_label, *(curve.label or chart.y_label for curve in curves)]))
        lines += [_row(row) for row in zip(xs, *(curve.y for curve in curves), strict=False)]
    return "\r\n".join(lines) + "\r\n"


def _row(cells: Sequence[object]) -> str:
    return ",".join(_cell(cell) for cell in cells)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    words = f"{value:.7g}" if isinstance(value, float) else str(value)
    return f'"{words.replace(chr(34), chr(34) * 2)}"' if any(c in words for c in ',"\n') else words


def _seen(chart: Chart, curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The points that can be drawn."""
    x, y = numbers(list(curve.x)), numbers(list(curve.y))
    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    good = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not chart.log_x)) & ((y > 0) | (not chart.log_y))
    return x[good], y[good]


def _ranges(chart: Chart) -> tuple[tuple[float, float], tuple[float, float]]:
    points = [_seen(chart, curve) for curve in chart.curves]
    none = np.zeros(0)
    xs, ys = (np.concatenate([none, *(point[axis] for point in points)]) for axis in (0, 1))
    guides = [guide.value for guide in chart.guides if not guide.vertical]
    if chart.bars is not None:
        xs, ys = np.append(xs, chart.bars[0]), np.append(ys, [0.0, *chart.bars[1]])
    ys = np.append(ys, [g for g in guides if g > 0 or not chart.log_y])
    if chart.y_range is not None:
        ys = np.append(ys, chart.y_range)
    x_range = _widened(xs, chart.log_x, 0.0 if chart.bars is not None else 0.02)
    if chart.resolution_above:
        x_range = 0.0, float(xs.max()) if len(xs) else 1.0
    y_range = _widened(ys, chart.log_y, 0.03 if chart.bars is None else 0.0)
    return x_range, (y_range if chart.bars is None else (0.0, _ROOM_FOR_WORDS * y_range[1]))


def _widened(values: NDArray[np.float64], logarithmic: bool, share: float) -> tuple[float, float]:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if logarithmic:
        low, high = (low, high) if low > 0 else (0.1, 1.0)
        factor = max(1.05, (high / low) ** share)
        return low / factor, high * factor
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        half = 0.05 * abs(high) or 0.5
        return low - half, high + half
    return low - share * (high - low), high + share * (high - low)


def _legend_rows(curves: Sequence[Curve]) -> list[list[Curve]]:
    """The curves of the legend, in as many lines as their names need."""
    rows: list[list[Curve]] = [[]]
    used = 0.0
    for curve in curves:
        width = _SWATCH + 6 + text_width(curve.label) + 14
        if rows[-1] and used + width > WIDTH - _LEFT - _RIGHT:
            rows.append([])
            used = 0.0
        rows[-1].append(curve)
        used += width
    return rows


def _draw_legend(rows: Sequence[Sequence[Curve]]) -> list[Markup]:
    parts: list[Markup] = []
    for number, row in enumerate(rows):
        at, height = float(_LEFT), _TOP + _LEGEND_LINE * number + 4
        for curve in row:
            parts.append(line(at, height - 4, at + _SWATCH, height - 4, _style(curve)))
            parts.append(text(at + _SWATCH + 6, height, curve.label))
            at += _SWATCH + 6 + text_width(curve.label) + 14
    return parts


def _style(curve: Curve) -> str:
    colour = "currentColor" if curve.colour is None else ink(curve.colour)
    width = 1.2 if curve.colour is None else 1.8
    dashes = ";stroke-dasharray:5 3" if curve.dashed else ""
    return f"fill:none;stroke:{colour};stroke-width:{width};stroke-linejoin:round{dashes}"


def _draw_curve(chart: Chart, curve: Curve, x: Scale, y: Scale) -> Markup:
    xs, ys = numbers(list(curve.x)), numbers(list(curve.y))
    pieces, pen_down, dots = [], False, []
    for a, b in zip(xs, ys, strict=False):
        drawable = (
            np.isfinite(a) and np.isfinite(b) and (a > 0 or not chart.log_x) and (b > 0 or not chart.log_y)
        )
        if drawable:
            pieces.append(f"{'L' if pen_down else 'M'}{x(a):.1f} {y(b):.1f}")
            dots.append(element("circle", cx=round(x(a), 1), cy=round(y(b), 1), r=2.2))
        pen_down = bool(drawable)
    path = element("path", d="".join(pieces) or "M0 0", style=_style(curve))
    # A single point has no line and would be invisible: draw a dot.
    if not curve.dots and len(dots) > 1:
        return path
    colour = "currentColor" if curve.colour is None else ink(curve.colour)
    return element("g", path, element("g", *dots, style=f"fill:{colour}"))


def _is_drawable(value: float, logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not logarithmic)


def _draw_bars(chart: Chart, x: Scale, y: Scale) -> list[Markup]:
    if chart.bars is None:
        return []
    edges, heights = chart.bars
    pieces = [
        f"M{x(low):.1f} {y.begin:g}V{y(n):.1f}H{x(high):.1f}V{y.begin:g}Z"
        for low, high, n in zip(edges, edges[1:], heights, strict=False)
        if n > 0
    ]
    style = f"fill:{ink(1)};fill-opacity:.55;stroke:{ink(1)};stroke-width:.7"
    return [element("path", d="".join(pieces) or "M0 0", style=style)]


def _draw_guide(guide: Guide, x: Scale, y: Scale, above: bool = False) -> tuple[Markup, Markup | None]:
    """The line inside the frame and its label: beside the frame, or next to a vertical line.

    above : put the label of a vertical line at its top in any case.
    """
    style = "stroke:currentColor;stroke-width:1;stroke-dasharray:2 3;opacity:.75"
    if not guide.vertical:
        at = y(guide.value)
        label = (
            text(x.end + 5, at + 4, guide.label, font_size=FONT_SIZE - 1, opacity=0.85)
            if guide.label
            else None
        )
        return line(x.begin, at, x.end, at, style), label
    at = x(guide.value)
    flipped = at > (x.begin + x.end) / 2
    place, anchor = (at - 4, "end") if flipped else (at + 4, "start")
    # The label of a guide on the right is left of it and at the bottom, below a curve that falls; on the left
    # it is right of the guide and at the top, above the curve.  Above bars it is always at the top.
    height = y.begin - 8 if flipped and not above else y.end + 14
    label = (
        text(place, height, guide.label, anchor, font_size=FONT_SIZE - 1, opacity=0.85)
        if guide.label
        else None
    )
    return line(at, y.begin, at, y.end, style), label


def _resolutions(x: Scale, top: float) -> list[Markup]:
    """Full-period resolutions 1/q above the ticks of q."""
    parts = [text((x.begin + x.end) / 2, top - 24, "resolution (Å)", "middle")]
    ticks = [tick for tick in x.ticks() if tick > 0]
    values = [float(f"{1 / tick:.3g}") for tick in ticks]
    for tick, words in zip(ticks, tick_words(values), strict=True):
        parts.append(line(x(tick), top - 5, x(tick), top, "stroke:currentColor;stroke-width:1"))
        parts.append(text(x(tick), top - 8, words, "middle"))
    return parts
