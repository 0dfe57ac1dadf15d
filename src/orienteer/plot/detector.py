"""The picture of a detector: panels, use of the pixels, resolution rings and the beam."""

from typing import TYPE_CHECKING

import numpy as np

from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.resolution import corner_resolution_A, edge_resolution_A, resolution_rings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MM_PER_M = 1e3
# Distinct in grey and for colour-blind readers; unused pixels do not attract the eye.
USE_COLOURS = {
    PixelUse.ORIENT_AND_MERGE: "#9ecae1",
    PixelUse.MERGE_ONLY: "#fdd49e",
    PixelUse.NEVER: "#6b6b6b",
}
USE_WORDS = {
    PixelUse.ORIENT_AND_MERGE: "orient and merge",
    PixelUse.MERGE_ONLY: "merge only",
    PixelUse.NEVER: "never used",
}
RING_COLOUR = "#a50f15"
# With more panels than this the outlines and names would hide the pixels.
MOST_OUTLINES = 512
MOST_NAMES = 16


def plot_detector(detector: Detector, wavelength_A: float | None = None) -> "Figure":
    """A figure of the detector seen against the beam, in mm, with resolution rings at a wavelength."""
    from matplotlib.figure import Figure

    left, right, bottom, top = (MM_PER_M * edge for edge in detector.assembly.extent_m)
    margin = 0.04 * max(right - left, top - bottom)
    x_range = min(left, 0) - margin, max(right, 0) + margin
    y_range = min(bottom, 0) - margin, max(top, 0) + margin
    height_per_width = (y_range[1] - y_range[0]) / (x_range[1] - x_range[0])
    # Room for the axes' labels, title and legend around a picture of the detector's own proportions.
    figure = Figure(
        figsize=(7.5, 1.6 + 6.6 * float(np.clip(height_per_width, 0.3, 2.5))), layout="constrained"
    )
    axes = figure.add_subplot()
    _draw_uses(axes, detector)
    _draw_panels(axes, detector)
    axes.set_xlim(*x_range)
    axes.set_ylim(*y_range)
    axes.plot(0, 0, marker="+", markersize=12, markeredgewidth=1.6, color=RING_COLOUR, zorder=5)
    if wavelength_A is not None:
        _draw_rings(axes, detector, wavelength_A)
    axes.set_aspect("equal")
    axes.set_xlabel("x (mm), seen against the beam")
    axes.set_ylabel("y (mm)")
    figure.suptitle(_title(detector, wavelength_A), fontsize="medium")
    return figure


def _title(detector: Detector, wavelength_A: float | None) -> str:
    shape = " × ".join(str(n) for n in detector.frame_shape)
    title = f"{detector.name}: {shape} pixels at {detector.distance_m:.4g} m"
    if wavelength_A is None:
        return title
    edge_A, corner_A = edge_resolution_A(detector, wavelength_A), corner_resolution_A(detector, wavelength_A)
    reach = (
        f"edge {edge_A:.3g} Å, corner {corner_A:.3g} Å"
        if np.isfinite(edge_A)
        else f"reaches {corner_A:.3g} Å"
    )
    return f"{title}\n{reach} at a wavelength of {wavelength_A:.4g} Å"


def _draw_uses(axes: "Axes", detector: Detector) -> None:
    """Draw pixels coloured by their use; the legend gives the number for each use."""
    from matplotlib.colors import ListedColormap
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    uses = detector.assemble(detector.mask)
    extent = [MM_PER_M * edge for edge in detector.assembly.extent_m]
    colours = ListedColormap([USE_COLOURS[use] for use in PixelUse])
    axes.imshow(
        uses,
        origin="lower",
        extent=(extent[0], extent[1], extent[2], extent[3]),
        cmap=colours,
        vmin=-0.5,
        vmax=2.5,
        interpolation="nearest",
    )
    counts = {use: int((detector.mask[detector.covered] == use).sum()) for use in PixelUse}
    handles: list[Patch | Line2D] = [
        Patch(facecolor=USE_COLOURS[use], label=f"{USE_WORDS[use]}: {count:,}")
        for use, count in counts.items()
        if count
    ]
    handles.append(
        Line2D(
            [],
            [],
            linestyle="",
            marker="+",
            markersize=9,
            markeredgewidth=1.6,
            color=RING_COLOUR,
            label="beam",
        )
    )
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize="small")


def _draw_panels(axes: "Axes", detector: Detector) -> None:
    from matplotlib.collections import PolyCollection

    if not 1 <= len(detector.panels) <= MOST_OUTLINES:
        return
    corners = [MM_PER_M * panel.corners_m()[:, :2] for panel in detector.panels]
    axes.add_collection(PolyCollection(corners, facecolors="none", edgecolors="#222222", linewidths=0.7))
    if not 1 < len(detector.panels) <= MOST_NAMES:
        return
    for panel, outline in zip(detector.panels, corners, strict=True):
        x, y = outline.mean(axis=0)
        axes.text(x, y, panel.name, ha="center", va="center", fontsize="small", color="#222222", clip_on=True)


def _draw_rings(axes: "Axes", detector: Detector, wavelength_A: float) -> None:
    from matplotlib.patches import Circle

    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for ring in resolution_rings(detector, wavelength_A):
        radius = MM_PER_M * ring.radius_m
        axes.add_patch(
            Circle((0, 0), radius, fill=False, color=RING_COLOUR, linewidth=1, linestyle=(0, (5, 3)))
        )
        # Put the label where the ring is inside the picture: above the beam, or on a diagonal.
        for angle in np.radians([90, 45, 135, 225, 315, 0, 180, 270]):
            x, y = radius * np.cos(angle), radius * np.sin(angle)
            if left < x < right and bottom < y < top:
                axes.text(
                    x,
                    y,
                    f"{ring.resolution_A:g} Å",
                    ha="center",
                    va="center",
                    fontsize="small",
                    color=RING_COLOUR,
                    clip_on=True,
                    bbox={
                        "boxstyle": "round,pad=0.15",
                        "facecolor": "white",
                        "edgecolor": "none",
                        "alpha": 0.85,
                    },
                )
                break
