"""Small vector drawings: a frame with two scales, to hold charts and pictures.

Texts stay texts.  Lines take the colour of the surrounding text and curves take theirs from the page, so that
one drawing serves light and dark pages; :func:`standalone` fixes the light colours for a separate file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from orienteer.plot.ticks import linear_ticks, log_ticks
from orienteer.report.markup import Content, Markup, element

# A palette for colour-blind readers, on white; the page has its own on dark.
COLOURS = ("#0b5fa5", "#c2410c", "#0f766e", "#7e22ce", "#a16207", "#be185d")
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
FONT_SIZE = 12
_CHARACTER = 0.56 * FONT_SIZE  # mean width
_VARIABLE = re.compile(r"var\(--[a-z0-9-]+,\s*([^)]+)\)")


def ink(number: int) -> str:
    """The colour of curve 1, 2, ... as a CSS variable; the light colour is the fallback.

    >>> ink(1), ink(7)
    ('var(--curve-1, #0b5fa5)', 'var(--curve-1, #0b5fa5)')
    """
    index = (number - 1) % len(COLOURS)
    return f"var(--curve-{index + 1}, {COLOURS[index]})"


@dataclass(frozen=True)
class Scale:
    """Maps values to pixels.

    low, high : values at the ends; begin, end : their pixels.
    """

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value.

        >>> Scale(0, 10, 100, 200)(5), Scale(1, 100, 0, 10, True)(10)
        (150.0, 5.0)
        """
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = math.log(max(value, 1e-300)), math.log(low), math.log(high)
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values between the ends."""
        return (
            log_ticks(self.low, self.high, most)
            if self.logarithmic
            else linear_ticks(self.low, self.high, most)
        )


def tick_words(ticks: Sequence[float]) -> list[str]:
    """Tick labels with as many digits as needed to distinguish them.

    >>> tick_words([0.0, 0.005, 0.01]), tick_words([-1000.0, 20000.0])
    (['0', '0.005', '0.01'], ['−1,000', '20,000'])
    >>> tick_words([100.0918001, 100.0918002])
    ['100.0918001', '100.0918002']
    """
    for digits in range(6, 18):
        words = [
            f"{tick:,.0f}" if tick == round(tick) and 1e3 <= abs(tick) < 1e7 else f"{tick:.{digits}g}"
            for tick in ticks
        ]
        if len(set(words)) == len(set(ticks)):
            break
    return [word.replace("-", "−") for word in words]


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: str | float | None) -> Markup:
    """A line of text that starts, is centred or ends at a point; ``y`` is its baseline."""
    return element("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line."""
    place = [round(value, 1) for value in (x1, y1, x2, y2)]
    return element("line", x1=place[0], y1=place[1], x2=place[2], y2=place[3], style=style)


def text_width(words: str, size: float = FONT_SIZE) -> float:
    """Estimated width of a text in pixels; the exact one depends on the browser's font."""
    return len(words) * _CHARACTER * size / FONT_SIZE


def drawing(width: float, height: float, words: str, content: Sequence[Content]) -> Markup:
    """A whole drawing.

    words : what it shows, for screen readers.
    """
    return element(
        "svg",
        element("title", words),
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_label=words,
        font_family=FONT,
        font_size=FONT_SIZE,
        fill="currentColor",
    )


def window(left: float, top: float, width: float, height: float, content: Sequence[Content]) -> Markup:
    """Content clipped to a rectangle; its coordinates are those of the drawing."""
    place = {"x": left, "y": top, "width": width, "height": height}
    return element("svg", *content, viewBox=f"{left:g} {top:g} {width:g} {height:g}", **place)


def axes(
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    *,
    grid: bool = True,
    most: tuple[int, int] = (6, 6),
    whole_x: bool = False,
) -> list[Markup]:
    """The frame of a plot with its ticks, their labels and the names of the axes.

    x, y : the scales; ``y`` begins at the bottom.
    most : largest number of ticks along x and y.
    whole_x : x counts something, so its ticks are whole numbers only.
    """
    thin, faint = "stroke:currentColor;stroke-width:1", "stroke:currentColor;stroke-width:1;opacity:.14"
    parts: list[Markup] = []
    x_ticks = [tick for tick in x.ticks(most[0]) if not whole_x or tick == round(tick)]
    y_ticks = y.ticks(most[1])
    for tick, words in zip(x_ticks, tick_words(x_ticks), strict=True):
        at = x(tick)
        if grid:
            parts.append(line(at, y.begin, at, y.end, faint))
        parts.append(line(at, y.begin, at, y.begin + 5, thin))
        parts.append(text(at, y.begin + 18, words, "middle"))
    widest = 0.0
    for tick, words in zip(y_ticks, tick_words(y_ticks), strict=True):
        at = y(tick)
        if grid:
            parts.append(line(x.begin, at, x.end, at, faint))
        parts.append(line(x.begin - 5, at, x.begin, at, thin))
        parts.append(text(x.begin - 8, at + 4, words, "end"))
        widest = max(widest, text_width(words))
    parts.append(
        element(
            "path",
            d=f"M{x.begin:g} {y.end:g}H{x.end:g}V{y.begin:g}H{x.begin:g}Z",
            style="fill:none;stroke:currentColor;stroke-width:1",
        )
    )
    parts.append(text((x.begin + x.end) / 2, y.begin + 38, x_label, "middle"))
    if y_label:
        at = x.begin - widest - 18
        middle = (y.begin + y.end) / 2
        parts.append(text(at, middle, y_label, "middle", transform=f"rotate(-90 {at:.1f} {middle:.1f})"))
    return parts


def standalone(svg: Markup) -> str:
    """The drawing as a separate file: black lines, light colours, no CSS variables."""
    fixed = _VARIABLE.sub(r"\1", svg).replace("<svg ", '<svg style="color:#000" ', 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{fixed}\n'
