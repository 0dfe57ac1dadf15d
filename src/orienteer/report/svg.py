"""Small vector drawings: a frame with two scales, into which charts and pictures are put.

Texts stay texts.  Ink takes the colour of the text around it and curves take theirs from the page, so that
one drawing serves light and dark pages; :func:`standalone` fixes the light ones for a file of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from orienteer.plot.ticks import linear_ticks, log_ticks
from orienteer.report.markup import Content, Markup, element

# A palette that colour-blind readers can tell apart, on white; the page has its own for dark.
COLOURS = ("#0b5fa5", "#c2410c", "#0f766e", "#7e22ce", "#a16207", "#be185d")
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
FONT_SIZE = 12
_CHARACTER = 0.56 * FONT_SIZE  # mean width
_VARIABLE = re.compile(r"var\(--[a-z0-9-]+,\s*([^)]+)\)")


def ink(number: int) -> str:
    """The colour of curve 1, 2, ... as CSS knows it, with the light one where no page says otherwise.

    >>> ink(1), ink(7)
    ('var(--curve-1, #0b5fa5)', 'var(--curve-1, #0b5fa5)')
    """
    index = (number - 1) % len(COLOURS)
    return f"var(--curve-{index + 1}, {COLOURS[index]})"


@dataclass(frozen=True)
class Scale:
    """From values to pixels.

    low, high : values at the ends; begin, end : pixels there.
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
    """Tick labels with as many digits as it takes to tell them apart.

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
    """A line of text that begins, is centred or ends at a point; ``y`` is its base line."""
    return element("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line."""
    place = [round(value, 1) for value in (x1, y1, x2, y2)]
    return element("line", x1=place[0], y1=place[1], x2=place[2], y2=place[3], style=style)


def text_width(words: str, size: float = FONT_SIZE) -> float:
    """About how wide a text is, in pixels: without a browser, nobody knows better."""
    return len(words) * _CHARACTER * size / FONT_SIZE


def drawing(width: float, height: float, words: str, content: Sequence[Content]) -> Markup:
    """A whole drawing.

    words : what it shows, for those who do not see it.
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
    """What lies within a rectangle, cut off at its edges; places in it count from those of the drawing."""
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
    most : ticks along each of them.
    whole_x : x counts something, so ticks stand at whole numbers only.
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
    """The drawing as a file of its own: black ink, light colours, no variables of a page."""
    fixed = _VARIABLE.sub(r"\1", svg).replace("<svg ", '<svg style="color:#000" ', 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{fixed}\n'
