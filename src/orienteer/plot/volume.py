"""A volume as three central slices; those of an intensity on a logarithmic scale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from orienteer.plot.words import plain_text
from orienteer.volume.volume import Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLANES = (("x", "y"), ("x", "z"), ("y", "z"))


def plot_volume(volume: Volume, title: str = "") -> "Figure":
    """Slices through the centre: the first-named axis runs to the right, the second one up."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained", dpi=110)
    figure.suptitle(f"{plain_text(title)}    {' x '.join(map(str, volume.shape))} voxels")
    draw_slices(figure.subplots(1, len(PLANES)), volume)
    return figure


def draw_slices(places: "Sequence[Axes]", volume: Volume, label: str = "") -> None:
    """Draw slices through the centre (xy, xz, yz), one on each of the given axes.

    label : of the colour bar; by default "intensity" or "density", by the space of the volume.
    """
    from matplotlib.colors import LogNorm, Normalize

    values = np.asarray(volume.values, np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    is_intensity = volume.space == "reciprocal" and len(positive) > 0
    centre = dict(zip("xyz", volume.centre_index, strict=True))
    planes = {axis: np.take(values, index, axis="xyz".index(axis)) for axis, index in centre.items()}
    seen = np.concatenate([plane[np.isfinite(plane)] for plane in planes.values()])
    norm: Normalize = Normalize(*((seen.min(), seen.max()) if len(seen) else (0.0, 1.0)))
    if is_intensity:
        norm = LogNorm(max(np.percentile(positive, 1), positive.max() * 1e-7), positive.max())
    unit = "1/Å" if volume.space == "reciprocal" else "Å"
    coordinates = dict(zip("xyz", volume.axes(), strict=True))
    halves = dict(zip("xyz", np.array(volume.voxel_size) / 2, strict=True))
    edges = {name: (axis[0] - halves[name], axis[-1] + halves[name]) for name, axis in coordinates.items()}
    for axes, (right, up) in zip(places, PLANES, strict=False):
        across = ({"x", "y", "z"} - {right, up}).pop()
        plane = planes[across].T
        if is_intensity:
            plane = np.where(plane <= 0, norm.vmin, plane)
        left, end, bottom, top = (edge for axis in (right, up) for edge in edges[axis])
        shown = axes.imshow(plane, origin="lower", extent=(left, end, bottom, top), cmap="magma", norm=norm)
        axes.locator_params(nbins=5)
        axes.set(
            xlabel=f"{right} ({unit})",
            ylabel=f"{up} ({unit})",
            title=f"{across} = {coordinates[across][centre[across]]:.4g} {unit}",
        )
    label = label or ("intensity" if volume.space == "reciprocal" else "density")
    axes.figure.colorbar(shown, ax=list(places), shrink=0.8, label=label)
