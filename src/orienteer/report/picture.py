"""Pictures with scales, in a row: planes of a volume, a frame of the detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from orienteer.report.markup import Markup, element
from orienteer.report.png import as_entries, data_link, encode_png, palette_of
from orienteer.report.svg import Scale, axes, drawing, line, text, tick_words, window

SIDE = 236
_LEFT, _TOP, _BOTTOM, _GAP = 70, 30, 50, 76
_BAR_WIDTH, _BAR_ROOM = 12, 92


@dataclass(frozen=True, eq=False)
class Plane:
    """One picture.

    values : (n_right, n_up), NaN where there is no value.
    right, up : the first and last coordinate along each axis, at the centres of the pixels.
    """

    title: str
    values: NDArray[np.floating]
    right: tuple[float, float]
    up: tuple[float, float]
    right_label: str
    up_label: str


@dataclass(frozen=True)
class Colours:
    """How values become colours.

    low, high : values of the first and the last colour.
    label : of the colour bar.
    smooth : whether to interpolate between pixels; otherwise single pixels are visible.
    """

    name: str
    low: float
    high: float
    label: str
    logarithmic: bool = False
    smooth: bool = False

    def shares(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Position of each value between low (0) and high (1); values without a logarithm are at low."""
        if not self.logarithmic:
            return np.asarray((values - self.low) / (self.high - self.low))
        known = np.where(np.isnan(values), np.nan, np.maximum(values, self.low))
        return np.asarray(np.log(known / self.low) / np.log(self.high / self.low))


def draw_planes(planes: Sequence[Plane], colours: Colours, words: str) -> Markup:
    """Pictures side by side with one colour bar for all.

    words : what they show, for screen readers.
    """
    sizes = [_size(plane) for plane in planes]
    height = _TOP + max(size[1] for size in sizes) + _BOTTOM
    parts: list[Markup] = []
    left = float(_LEFT)
    for plane, (width, tall) in zip(planes, sizes, strict=True):
        parts += _draw_plane(plane, colours, left, width, tall)
        left += width + _GAP
    left += 16 - _GAP
    parts += colour_bar(colours, left, _TOP, max(size[1] for size in sizes), _BAR_ROOM)
    return drawing(left + _BAR_ROOM, height, words, parts)


def _size(plane: Plane) -> tuple[float, float]:
    """Width and height of a picture in pixels; the longer one is SIDE."""
    spans = [_pixels(*ends, n) for ends, n in zip((plane.right, plane.up), plane.values.shape, strict=True)]
    lengths = [abs(span[1] - span[0]) for span in spans]
    return SIDE * lengths[0] / max(lengths), SIDE * lengths[1] / max(lengths)


def _pixels(first: float, last: float, n: int) -> tuple[float, float]:
    """Coordinates of the outer edges of the first and last pixel."""
    half = (last - first) / (2 * (n - 1)) if n > 1 else 0.5
    return first - half, last + half


def _draw_plane(plane: Plane, colours: Colours, left: float, width: float, tall: float) -> list[Markup]:
    n_right, n_up = plane.values.shape
    low, high = _pixels(*plane.right, n_right)
    x = Scale(low, high, left, left + width)
    low, high = _pixels(*plane.up, n_up)
    y = Scale(low, high, _TOP + tall, _TOP)
    values = _finer(plane.values) if colours.smooth else plane.values
    pixels = as_entries(colours.shares(values)).T[::-1]  # the first row of a picture is its top
    picture = image(encode_png(pixels, palette_of(colours.name)), left, _TOP, width, tall, colours.smooth)
    return [
        window(left, _TOP, width, tall, [picture]),
        *axes(x, y, plane.right_label, plane.up_label, grid=False, most=(5, 5)),
        text(left, _TOP - 10, plane.title, font_weight="600"),
    ]


def _finer(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Values without gaps, interpolated by splines to about as many pixels as the picture has."""
    factor = -(-SIDE // max(values.shape))
    if factor <= 1 or min(values.shape) < 2:
        return values
    return np.asarray(ndimage.zoom(values, factor, order=3, grid_mode=True, mode="nearest"))


def image(png: bytes, left: float, top: float, width: float, height: float, smooth: bool) -> Markup:
    """A PNG in a drawing, with the given place and size."""
    return element(
        "image",
        href=data_link(png, "image/png"),
        x=left,
        y=top,
        width=width,
        height=height,
        preserveAspectRatio="none",
        style=None if smooth else "image-rendering:pixelated",
    )


def colour_bar(colours: Colours, left: float, top: float, tall: float, room: float) -> list[Markup]:
    """The colour bar with its ticks and its label.

    room : width of all of it, from the left edge of the bar.
    """
    y = Scale(colours.low, colours.high, top + tall, top, colours.logarithmic)
    ramp = as_entries(np.linspace(1, 0, 200)[:, None])
    parts = [image(encode_png(ramp, palette_of(colours.name)), left, top, _BAR_WIDTH, tall, True)]
    right = left + _BAR_WIDTH
    thin = "fill:none;stroke:currentColor;stroke-width:1"
    parts.append(element("path", d=f"M{left:g} {top:g}H{right:g}V{top + tall:g}H{left:g}Z", style=thin))
    ticks = y.ticks(6)
    for tick, words in zip(ticks, tick_words(ticks), strict=True):
        parts.append(line(right, y(tick), right + 4, y(tick), thin))
        parts.append(text(right + 7, y(tick) + 4, words))
    at, middle = left + room - 10, top + tall / 2
    parts.append(text(at, middle, colours.label, "middle", transform=f"rotate(-90 {at:.1f} {middle:.1f})"))
    return parts
