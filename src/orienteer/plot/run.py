"""One picture of a reconstruction: its intensity, curves over the iterations, and viewing directions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.orientation.point_group import PointGroup
from orienteer.plot.coverage import draw_coverage
from orienteer.plot.curves import StepRecord, draw_curves, draw_fluence, draw_radial
from orienteer.plot.volume import draw_slices
from orienteer.plot.words import plain_text
from orienteer.volume.volume import Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_MODELS = 4  # more rows of slices would be too small to read


def plot_run(
    volumes: Sequence[Volume],
    steps: Sequence[StepRecord],
    orientations: Mapping[str, NDArray[Any]],
    title: str = "",
    group: PointGroup | str = "C1",
) -> "Figure":
    """Slices of each intensity, curves per iteration, radial curves, coverage and fluence.

    volumes : the intensity of each model; empty before the first checkpoint.
    steps : the steps as the event log keeps them, in order.
    orientations : ``quaternion`` (N, 4) and ``fluence`` (N,) of the frames; empty before a checkpoint.
    """
    from matplotlib.figure import Figure

    rows = max(1, min(len(volumes), MOST_MODELS))
    figure = Figure(figsize=(15, 3.9 * rows + 6.9), layout="constrained", dpi=110)
    figure.suptitle(f"{plain_text(title)}\n{_in_a_line(volumes, steps)}", fontsize=12)
    parts: Any = figure.subfigures(3, 1, height_ratios=[3.9 * rows, 2.9, 3.5])
    slices, curves, frames = parts
    _draw_models(slices.subplots(rows, 3, squeeze=False), volumes)
    draw_curves(curves.subplots(1, 5), steps)
    grid = frames.add_gridspec(1, 3)
    last = steps[-1] if steps else {}
    draw_radial(frames.add_subplot(grid[0]), last.get("radial") or {}, last.get("agrees_to_A"))
    quaternions = np.asarray(orientations.get("quaternion", np.zeros((0, 4))))
    draw_coverage(frames, grid[1], quaternions, group)
    draw_fluence(frames.add_subplot(grid[2]), np.asarray(orientations.get("fluence", np.zeros(0))))
    return figure


def _in_a_line(volumes: Sequence[Volume], steps: Sequence[StepRecord]) -> str:
    if not steps:
        return "no iteration is done yet"
    last = steps[-1]
    n_models = f"{len(volumes)} models, " if len(volumes) > 1 else ""
    agrees_to_A, resolution_A = last.get("agrees_to_A"), last.get("resolution_A")
    reach = f", halves agree to {agrees_to_A:.3g} Å (0.5)" if agrees_to_A else ""
    reach += f", data to {resolution_A:.3g} Å" if resolution_A else ""
    ended = "" if last.get("finished") else " (not finished)"
    return f"{n_models}iteration {last['iteration']}{reach}{ended}"


def _draw_models(axes: "NDArray[Any]", volumes: Sequence[Volume]) -> None:
    if not volumes:
        row: Sequence[Axes] = axes[0]
        for panel in row:
            panel.set_axis_off()
        row[1].text(0.5, 0.5, "no intensity yet", ha="center", va="center", transform=row[1].transAxes)
    for number, (row, volume) in enumerate(zip(axes, volumes, strict=False), start=1):
        draw_slices(row, volume, "intensity (photons per pixel)")
        if len(volumes) > 1:
            row[0].set_ylabel(f"model {number}:  {row[0].get_ylabel()}")
