"""Planes through volumes and projections along their axes, as pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orienteer.report.markup import Markup
from orienteer.report.picture import Colours, Plane, draw_planes
from orienteer.volume.volume import Volume

PAIRS = (("x", "y"), ("x", "z"), ("y", "z"))
_MARGIN = 0.12  # of a particle's extent, left free around it
_LEAST_SHARE = 0.1  # of the largest value; below it may be ringing rather than particle


def draw_intensity(volume: Volume, name: str) -> Markup:
    """Three planes through the centre of an intensity, on a logarithmic scale."""
    values = np.asarray(volume.values, np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    high = float(positive.max()) if len(positive) else 1.0
    low = max(float(np.percentile(positive, 1)), high * 1e-7) if len(positive) else 0.1
    colours = Colours("magma", min(low, high / 10), high, "intensity (photons per pixel)", logarithmic=True)
    words = f"{name}: the central planes xy, xz and yz of the intensity on a logarithmic scale"
    return draw_planes(_centre_planes(volume), colours, words)


def draw_density(volume: Volume, unit: str) -> Markup:
    """Three planes through the centre of a density."""
    shown = cropped(volume)
    values = np.nan_to_num(np.asarray(shown.values, np.float64))
    colours = _linear(values, f"density ({unit})")
    return draw_planes(_centre_planes(shown), colours, "The central planes xy, xz and yz of the density")


def draw_projections(volume: Volume, unit: str) -> Markup:
    """The density summed along each axis."""
    shown = cropped(volume)
    values = np.nan_to_num(np.asarray(shown.values, np.float64))
    sums = {across: values.sum(index) * shown.voxel_size[index] for index, across in enumerate("xyz")}
    planes = [_plane(shown, sums[_across(*pair)], *pair, f"along {_across(*pair)}") for pair in PAIRS]
    colours = _linear(
        np.concatenate([part.ravel() for part in sums.values()]), f"projection ({_summed(unit)})"
    )
    return draw_planes(planes, colours, "The density projected along z, y and x")


def cropped(volume: Volume) -> Volume:
    """The part of a density that holds the particle, with a margin; the same length along each axis."""
    values = np.nan_to_num(np.asarray(volume.values))
    there = np.argwhere(values > _LEAST_SHARE * values.max()) if values.max() > 0 else np.zeros((0, 3))
    if not len(there):
        return volume
    first, last = there.min(axis=0), there.max(axis=0)
    half = int(np.ceil((last - first).max() / 2 * (1 + 2 * _MARGIN))) + 1
    middle = (first + last) // 2
    lows = np.maximum(0, middle - half)
    highs = np.minimum(np.array(volume.shape), middle + half + 1)
    box = tuple(slice(int(low), int(high)) for low, high in zip(lows, highs, strict=True))
    origin = [
        start + step * int(low)
        for start, step, low in zip(volume.origin, volume.voxel_size, lows, strict=True)
    ]
    return Volume(np.asarray(volume.values)[box], volume.voxel_size, volume.space, origin, volume.name)


def _linear(values: NDArray[np.float64], label: str) -> Colours:
    """Colours from 0 to the largest value, or from the smallest value if it is far below 0."""
    high = float(np.percentile(values, 99.95)) or float(values.max()) or 1.0
    high = high if high > 0 else 1.0
    low = float(values.min())
    return Colours("viridis", low if low < -0.2 * high else 0.0, high, label, smooth=True)


def _centre_planes(volume: Volume) -> list[Plane]:
    values, centre = np.asarray(volume.values, np.float64), dict(zip("xyz", volume.centre_index, strict=True))
    unit = "1/Å" if volume.space == "reciprocal" else "Å"
    coordinates = dict(zip("xyz", volume.axes(), strict=True))
    planes = []
    for right, up in PAIRS:
        across = _across(right, up)
        index = centre[across]
        place = coordinates[across][index]
        # Voxel sizes are not round numbers, so the centre may be at 1e-14 instead of 0.
        place = 0.0 if abs(place) < 1e-6 * volume.voxel_size[0] else float(f"{place:.3g}")
        title = f"{across} = {place:g} {unit}".replace("-", "−")
        planes.append(_plane(volume, np.take(values, index, axis="xyz".index(across)), right, up, title))
    return planes


def _plane(volume: Volume, values: NDArray[np.float64], right: str, up: str, title: str) -> Plane:
    unit = "1/Å" if volume.space == "reciprocal" else "Å"
    ends = {name: (float(axis[0]), float(axis[-1])) for name, axis in zip("xyz", volume.axes(), strict=True)}
    return Plane(title, values, ends[right], ends[up], f"{right} ({unit})", f"{up} ({unit})")


def _across(right: str, up: str) -> str:
    return next(name for name in "xyz" if name not in (right, up))


def _summed(unit: str) -> str:
    """The unit of a density times a length."""
    return unit.replace("Å³", "Å²") if unit.endswith("/Å³") else f"{unit} × Å"
