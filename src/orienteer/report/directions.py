"""The directions from which the particle was seen, on an equal-area map (Mollweide)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.plot.coverage import bands_for, direction_density, viewing_directions
from orienteer.report.markup import Markup, element
from orienteer.report.picture import Colours, colour_bar, image
from orienteer.report.png import as_entries, encode_png, palette_of
from orienteer.report.svg import drawing, text

_WIDTH, _HEIGHT, _LEFT, _TOP = 360, 180, 16, 34
_MOST_DIRECTIONS = 2_000_000
_FINENESS = 2  # pixels of the picture per pixel of the drawing


def draw_directions(quaternions: NDArray[np.floating], group: PointGroup | str) -> Markup | None:
    """The map, relative to even coverage; None if no frame has an orientation.

    quaternions : (N, 4) orientations of the frames, scalar first.
    """
    order = as_point_group(group).order
    # More directions would take memory and change no visible colour.
    step = -(-len(quaternions) * order // _MOST_DIRECTIONS)
    directions = viewing_directions(quaternions[:: max(1, step)], group)
    directions = directions[np.isfinite(directions).all(axis=1)]
    if not len(directions):
        return None
    density = direction_density(directions, bands_for(len(directions)))
    high = max(2.0, float(np.percentile(density, 99)))
    colours = Colours("viridis", 0.0, high, "frames (1: even)")
    shares = colours.shares(on_map(density, _FINENESS * _WIDTH, _FINENESS * _HEIGHT))
    pixels = palette_of(colours.name)[as_entries(shares)]
    opacity = np.where(np.isnan(shares), 0, 255).astype(np.uint8)
    picture = encode_png(np.dstack([pixels, opacity]))
    words = "Map of the beam's directions as seen by the particle, coloured by how often each occurs"
    parts = [
        text(_LEFT, 16, "Directions of the beam in the particle", font_weight="600"),
        image(picture, _LEFT, _TOP, _WIDTH, _HEIGHT, smooth=True),
        *_graticule(),
        *colour_bar(colours, _LEFT + _WIDTH + 22, _TOP, _HEIGHT, room=70),
    ]
    return drawing(460, _TOP + _HEIGHT + 24, words, parts)


def on_map(density: NDArray[np.float64], width: int, height: int) -> NDArray[np.float64]:
    """The density of each pixel (height, width) of the map, north up; NaN outside of it.

    density : (bands, cells), bands of equal area from the south to the north pole, cells from longitude -180
        to 180 degrees.
    """
    x = (np.arange(width) + 0.5) / width * 2 - 1
    y = 1 - (np.arange(height) + 0.5) / height * 2
    half_width = np.sqrt(1 - y**2)[:, None]
    angle = np.arcsin(y)
    sine = (2 * angle + np.sin(2 * angle)) / np.pi  # of the latitude
    n_bands, n_cells = density.shape
    band = np.clip(((sine + 1) / 2 * n_bands).astype(int), 0, n_bands - 1)[:, None]
    around = x[None, :] / half_width
    cell = np.clip(((around + 1) / 2 * n_cells).astype(int), 0, n_cells - 1)
    return np.where(np.abs(around) <= 1, density[band, cell], np.nan)


def _graticule() -> list[Markup]:
    """The edge of the map, meridians every 60 and parallels every 30 degrees."""
    x, y = _LEFT + _WIDTH / 2, _TOP + _HEIGHT / 2
    a, b = _WIDTH / 2, _HEIGHT / 2
    thin = "fill:none;stroke:#fff;stroke-width:.7;opacity:.45"
    parts = [element("ellipse", cx=x, cy=y, rx=a * share, ry=b, style=thin) for share in (1 / 3, 2 / 3)]
    parts.append(element("path", d=f"M{x} {y - b}V{y + b}", style=thin))
    for latitude in (-60, -30, 0, 30, 60):
        height = _height_on_map(np.radians(latitude))
        at, half = y - b * height, a * np.sqrt(1 - height**2)
        parts.append(element("path", d=f"M{x - half:.1f} {at:.1f}H{x + half:.1f}", style=thin))
    edge = "fill:none;stroke:currentColor;stroke-width:1"
    return [*parts, element("ellipse", cx=x, cy=y, rx=a, ry=b, style=edge)]


def _height_on_map(latitude: float) -> float:
    """Height of a latitude on the map, -1 to 1: sin t, with 2 t + sin 2 t = pi sin(latitude)."""
    angle = latitude
    for _ in range(30):
        angle -= (2 * angle + np.sin(2 * angle) - np.pi * np.sin(latitude)) / (2 + 2 * np.cos(2 * angle))
    return float(np.sin(angle))
