"""The isosurface of a density: its level, its packing for the page, and pictures for any browser."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from orienteer.report.planes import cropped
from orienteer.volume.volume import Volume

SMALLEST_EDGE, LARGEST_EDGE = 64, 96  # voxels along the longest edge of a map in the page
_DEPTHS = {"x": 0, "y": 1, "z": 2}
_COLOUR = np.array([0.42, 0.60, 0.82])
_LIGHT = np.array([-0.45, 0.55, 0.70])  # right, up, towards the eye
_PICTURE = 320


@dataclass(frozen=True, eq=False)
class Packed:
    """A density as one byte per voxel.

    voxels : (n_x, n_y, n_z) uint8; 0 is ``low``, 255 is ``high``.
    voxel_A : edge of a voxel.
    level : of the surface at first, in the unit of the density.
    """

    voxels: NDArray[np.uint8]
    voxel_A: tuple[float, float, float]
    low: float
    high: float
    level: float

    @property
    def fill(self) -> float:
        """Diameter of the surface at ``level`` about the box centre over the longest edge; at most 1."""
        above = np.argwhere(self.voxels >= (self.level - self.low) / (self.high - self.low) * 255)
        if not len(above):
            return 1.0
        middle, size = (np.array(self.voxels.shape) - 1) / 2, np.array(self.voxel_A)
        away_A = float(np.linalg.norm((above - middle) * size, axis=1).max()) + float(size.max())
        return min(1.0, 2 * away_A / float((np.array(self.voxels.shape) * size).max()))


def surface_level(values: NDArray[np.floating]) -> float:
    """The value that best separates the particle from its surroundings (Otsu 1979).

    It minimises the variance within the two groups.  If the particle has a layer of just that density, a
    lower level is taken, so that the surface goes around the layer.

    >>> round(surface_level(np.repeat([0.0, 0.1, 0.9, 1.0], 1000)), 1)
    0.5
    """
    known = values[np.isfinite(values)].astype(np.float64)
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    if high <= low:
        return high
    counts, edges = np.histogram(known, bins=256, range=(low, high))
    middles = (edges[1:] + edges[:-1]) / 2
    n_below = np.cumsum(counts)[:-1].astype(np.float64)
    sum_below = np.cumsum(counts * middles)[:-1]
    n_above, sum_above = len(known) - n_below, (counts * middles).sum() - sum_below
    both = (n_below > 0) & (n_above > 0)
    between = np.zeros_like(n_below)
    between[both] = (
        n_below[both]
        * n_above[both]
        * (sum_below[both] / n_below[both] - sum_above[both] / n_above[both]) ** 2
    )
    best = np.flatnonzero(between >= between.max() * (1 - 1e-12))
    # Between two peaks with nothing in between, all values separate equally well: take the middle.
    return _outside_of_layers(known, float(edges[1:-1][best].mean()))


def _outside_of_layers(known: NDArray[np.float64], level: float) -> float:
    """The level, or a lower one if the surface would cut a layer of just that density into shreds.

    A clean surface lies where values change fast, so that few voxels have nearly its value.
    """
    around = float(np.median(known[known < level]))
    width = (level - around) / 10
    levels = np.linspace(level, around + (level - around) / 3, 21)
    # Only few voxels can be near a level.
    known = known[(known > levels[-1] - width) & (known < level + width)]
    n_near = np.array([np.count_nonzero(np.abs(known - one) < width / 2) for one in levels])
    return float(levels[n_near.argmin()]) if n_near[0] > 2 * n_near.min() else level


def pack(volume: Volume, level: float | None = None) -> Packed:
    """A density as the page shows it: cropped to the particle, with a suitable number of voxels.

    A large density becomes coarser.  A small one becomes finer by splines: this adds no detail, but a surface
    interpolated linearly between voxels would have corners.
    """
    shown = cropped(volume)
    values = np.nan_to_num(np.asarray(shown.values, np.float32))
    factor = float(np.clip(1.0, SMALLEST_EDGE / max(values.shape), LARGEST_EDGE / max(values.shape)))
    factors = [max(2, int(edge * factor)) / edge for edge in values.shape] if factor != 1 else [1.0, 1.0, 1.0]
    if factor < 1:
        # Blur first: detail too fine for the coarser voxels would cause aliasing.
        values = ndimage.gaussian_filter(values, [0.4 / one for one in factors])
        values = ndimage.zoom(values, factors, order=1, grid_mode=True, mode="nearest")
    elif factor > 1:
        values = ndimage.zoom(values, factors, order=3, grid_mode=True, mode="nearest")
    low, high = min(0.0, float(values.min())), float(values.max())
    span = high - low or 1.0
    level = surface_level(np.asarray(volume.values)) if level is None else level
    x, y, z = (size / one for size, one in zip(shown.voxel_size, factors, strict=True))
    return Packed(np.rint((values - low) / span * 255).astype(np.uint8), (x, y, z), low, low + span, level)


def surface_picture(packed: Packed, along: str, edge: int = _PICTURE) -> NDArray[np.uint8]:
    """The surface seen along an axis, (edge, edge, 4), lit from above on the left.

    The first of the other two axes runs to the right and the second one up, as in the pictures of planes.
    The eye is at +x, -y or +z, which keeps the hand of the particle.
    """
    depth = _DEPTHS[along]
    values = packed.low + packed.voxels.astype(np.float32) / 255 * (packed.high - packed.low)
    order = [axis for axis in range(3) if axis != depth]
    block = np.pad(np.transpose(values, (*order, depth)), 1, constant_values=packed.low)
    steps = [packed.voxel_A[axis] for axis in (*order, depth)]
    if along != "y":
        block = block[:, :, ::-1]  # depth counts away from the eye
    length = packed.fill * max(n * step for n, step in zip(block.shape, steps, strict=True))
    places = [
        (np.arange(edge) - (edge - 1) / 2) * length / edge / steps[axis] + (block.shape[axis] - 1) / 2
        for axis in (0, 1)
    ]
    # The density along the line of sight of each pixel: (edge, edge, depth).
    columns = np.tensordot(_between(places[0], block.shape[0]), block - packed.low, 1)
    columns = (
        np.tensordot(_between(places[1], block.shape[1]), columns, (1, 1)).transpose(1, 0, 2) + packed.low
    )
    above = columns >= packed.level
    hit, last = np.asarray(above.any(axis=2)), np.maximum(above.argmax(axis=2), 1)
    before, after = (np.take_along_axis(columns, (last - back)[..., None], 2)[..., 0] for back in (1, 0))
    rise = after - before
    depth_of = last - np.divide(after - packed.level, rise, out=np.zeros_like(rise), where=rise > 0)
    grid = np.meshgrid(*places, indexing="ij")
    return _shaded(block, np.array([*grid, depth_of]), hit, steps, packed)


def _between(places: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """(P, n) weights of linear interpolation at P places among n voxels; 0 outside."""
    return np.asarray(np.clip(1 - np.abs(places[:, None] - np.arange(n)), 0, 1))


def _shaded(
    block: NDArray[np.floating],
    points: NDArray[np.float64],
    hit: NDArray[np.bool_],
    steps: list[float],
    packed: Packed,
) -> NDArray[np.uint8]:
    """Colours of the surface from its normals; far parts are darker."""
    seen = points[:, hit]
    smooth = ndimage.gaussian_filter(block, 0.7)
    slopes = []
    for axis in range(3):
        shift = np.zeros((3, 1))
        shift[axis] = 0.7
        ahead, behind = (
            ndimage.map_coordinates(smooth, seen + sign * shift, order=1, cval=packed.low) for sign in (1, -1)
        )
        slopes.append((ahead - behind) / steps[axis])
    normal = -np.array(slopes)
    normal[2] *= -1  # light comes from where the eye is
    normal /= np.maximum(np.linalg.norm(normal, axis=0), 1e-12)
    diffuse = np.clip(_LIGHT / np.linalg.norm(_LIGHT) @ normal, 0, 1)
    facing = np.clip(normal[2], 0, 1)
    away = seen[2] / max(1, block.shape[2] - 1)
    brightness = (0.30 + 0.62 * diffuse + 0.12 * facing) * (1.08 - 0.35 * away)
    colours = np.clip(_COLOUR[:, None] * brightness + 0.18 * diffuse**24, 0, 1)
    pixels = np.zeros((*hit.shape, 4), np.uint8)
    pixels[hit] = np.rint(255 * np.vstack([colours, np.ones(len(away))])).T.astype(np.uint8)
    return np.ascontiguousarray(pixels.transpose(1, 0, 2)[::-1])
