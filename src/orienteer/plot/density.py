"""A phased density in one picture: slices, projections, the PRTF, and which starts agree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.compute.words import counted
from orienteer.phase.ensemble import Clusters
from orienteer.phase.prtf import THRESHOLD, Prtf
from orienteer.phase.r_factor import RFactor
from orienteer.phase.result import Phasing
from orienteer.plot.volume import PLANES
from orienteer.plot.words import plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Empty space that is shown around the particle, as a share of its extent.
MARGIN = 0.15
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # for colour-blind readers, too
NO_CLUSTER = "0.6"
SMALL = 8
# Percentile of the density inside its support that gets the brightest colour.
_BRIGHTEST = 99.8


def plot_density(phasing: Phasing, title: str = "") -> "Figure":
    """Three central slices, three projections, the PRTF, and the agreement of the starts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 11), layout="constrained", dpi=150)
    figure.suptitle(f"{plain_text(title)}\n{in_a_line(phasing)}".strip(), fontsize=11)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.1, wspace=0.04)
    parts: Any = figure.subfigures(2, 1, height_ratios=[7.4, 3.4])
    maps, curves = parts
    panels = maps.subplots(2, 3)
    unit = "e/Å³" if phasing.scale.is_absolute else "arbitrary"
    shown = draw_density_slices(panels[0], phasing)
    maps.colorbar(shown, ax=panels[0].tolist(), shrink=0.85, label=f"density ({unit})")
    shown = draw_projections(panels[1], phasing)
    unit = "e/Å²" if phasing.scale.is_absolute else "arbitrary"
    maps.colorbar(shown, ax=panels[1].tolist(), shrink=0.85, label=f"projected density ({unit})")
    left, middle, right = curves.subplots(1, 3)
    draw_transfer(left, phasing.prtf, phasing.r_factor)
    draw_agreement(middle, phasing.clusters)
    draw_scores(right, phasing.clusters)
    return figure


def in_a_line(phasing: Phasing) -> str:
    """The most important facts in one line."""
    chosen, all_starts = len(phasing.clusters.clusters[0]), phasing.clusters.n_starts
    repeats = phasing.prtf.in_brief().replace(" A", " Å")
    return f"{chosen} of {counted(all_starts, 'start')} agree, {repeats}, R = {phasing.r_factor.overall:.2f}"


def draw_density_slices(places: "Sequence[Axes]", phasing: Phasing) -> "AxesImage":
    """Slices through the middle of the box, with the outline of the support."""
    values, support = (to_numpy(v.values).astype(np.float64) for v in (phasing.density, phasing.support))
    seen = _part_to_show(phasing)
    centre = phasing.density.centre_index
    planes = [np.take(values, centre[across], axis=across) for across in _ACROSS]
    outlines = [np.take(support, centre[across], axis=across) for across in _ACROSS]
    # With a percentile, a bright voxel in the middle of a symmetric particle does not darken the others.
    high = float(np.percentile(values[support > 0.5], _BRIGHTEST)) if (support > 0.5).any() else 0.0
    limits = 0.0, high if high > 0 else 1.0
    for axes, plane, outline, across in zip(places, planes, outlines, _ACROSS, strict=True):
        shown = _draw_plane(axes, plane, phasing, across, seen, limits)
        if 0 < outline.sum() < outline.size:
            x, y = (phasing.density.axes()[a] for a in range(3) if a != across)
            axes.contour(x, y, outline.T, levels=[0.5], colors="white", linewidths=0.6, alpha=0.7)
        axes.set_title(f"slice at {'xyz'[across]} = 0", fontsize=9)
    return shown


def draw_projections(places: "Sequence[Axes]", phasing: Phasing) -> "AxesImage":
    """The density summed along each axis, times the size of a voxel."""
    values = to_numpy(phasing.density.values).astype(np.float64)
    seen = _part_to_show(phasing)
    planes = [values.sum(axis=across) * phasing.density.voxel_size[across] for across in _ACROSS]
    high = max(float(plane.max()) for plane in planes)
    for axes, plane, across in zip(places, planes, _ACROSS, strict=True):
        shown = _draw_plane(axes, plane, phasing, across, seen, (0.0, high if high > 0 else 1.0))
        axes.set_title(f"projection along {'xyz'[across]}", fontsize=9)
    return shown


def draw_transfer(axes: "Axes", curve: Prtf, wrong: RFactor | None = None) -> None:
    """Draw the PRTF over q, with the threshold 1/e and the value for random phases."""
    axes.plot(curve.q_inv_A, curve.values, color=COLOURS[0], lw=1.8, label="phases repeat (PRTF)")
    if wrong is not None and len(wrong.q_inv_A):
        axes.plot(wrong.q_inv_A, wrong.by_shell, color=COLOURS[1], lw=1.1, ls="--", label="R-factor")
    axes.axhline(THRESHOLD, color="0.3", lw=0.8, ls=":")
    # The two labels may be at almost the same height: put them at opposite ends of the axis.
    along = axes.get_yaxis_transform()
    axes.text(0.01, THRESHOLD, "1/e", fontsize=SMALL, va="bottom", color="0.3", transform=along)
    if curve.n_starts > 1:
        axes.axhspan(0, curve.floor, color="0.94", lw=0, zorder=0)
        words: dict[str, Any] = {"fontsize": SMALL, "va": "top", "ha": "right", "color": "0.5"}
        axes.text(0.99, curve.floor - 0.01, "random phases", transform=along, **words)
    if curve.resolution_A:
        axes.axvline(1 / curve.resolution_A, color=COLOURS[0], lw=0.8, ls=":")
    # Noise can make measured amplitudes too small; then the curve exceeds 1.
    highest = float(np.nanmax(curve.values, initial=1.0))
    axes.set(xlim=(0, None), ylim=(0, 1.05 * highest), xlabel="q (1/Å)")
    axes.locator_params(axis="x", nbins=5)
    axes.set_title(curve.in_brief().replace(" A", " Å"), fontsize=9)
    # Curves that jump leave no room for the legend between them.
    axes.legend(frameon=False, fontsize=SMALL, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    _finish(axes)


def draw_agreement(axes: "Axes", clusters: Clusters) -> None:
    """Draw the agreement of each pair of starts, ordered by cluster, the averaged cluster first."""
    order = [start for cluster in clusters.clusters for start in cluster.members]
    order += [start for start in range(clusters.n_starts) if start not in set(order)]
    pairs = clusters.agreement[np.ix_(order, order)]
    if not np.isfinite(pairs).any():
        axes.text(0.5, 0.5, "too many starts to show each pair", ha="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return
    shown = axes.imshow(pairs, vmin=0, vmax=1, cmap="cividis", interpolation="nearest")
    edge = -0.5
    for cluster in clusters.clusters:
        edge += len(cluster)
        if edge < clusters.n_starts - 0.5:
            axes.axhline(edge, color="white", lw=0.8)
            axes.axvline(edge, color="white", lw=0.8)
    axes.set(xlabel="starts, by cluster", ylabel="starts, by cluster")
    for axis in (axes.xaxis, axes.yaxis):  # positions are not the numbers of starts
        axis.set_ticks([])
    axes.set_title("agreement of each pair of starts", fontsize=9)
    axes.figure.colorbar(shown, ax=axes, shrink=0.85)
    axes.tick_params(labelsize=SMALL)


def draw_scores(axes: "Axes", clusters: Clusters) -> None:
    """Draw the free log-likelihood of each start over its agreement with the best averaged start."""
    chosen = clusters.clusters[0]
    with_leader = clusters.agreement[chosen.leader]
    if not np.isfinite(with_leader).any():
        with_leader = np.full(clusters.n_starts, np.nan)
        with_leader[list(chosen.members)] = chosen.agreement
    alone = np.ones(clusters.n_starts, bool)
    for number, cluster in enumerate(clusters.clusters):
        members = list(cluster.members)
        if number and len(members) == 1:
            continue
        alone[members] = False
        name = f"{'averaged' if number == 0 else 'another cluster'} ({len(members)})"
        axes.plot(
            with_leader[members], clusters.scores[members], "o", ms=4.5, color=COLOURS[number], label=name
        )
    if alone.any():
        name = f"alone ({alone.sum()})"
        axes.plot(with_leader[alone], clusters.scores[alone], "o", ms=3.5, color=NO_CLUSTER, label=name)
    axes.axvline(chosen.threshold, color="0.3", lw=0.8, ls=":")
    axes.set(xlim=(min(0.0, float(np.nanmin(with_leader))) - 0.03, 1.03))
    axes.set(xlabel="agreement with the best averaged start", ylabel="free log-likelihood per voxel")
    axes.set_title(f"{len(chosen)} of {counted(clusters.n_starts, 'start')} are averaged", fontsize=9)
    axes.legend(frameon=False, fontsize=SMALL, loc="best")
    _finish(axes)


_ACROSS = tuple(({0, 1, 2} - {"xyz".index(right), "xyz".index(up)}).pop() for right, up in PLANES)


def _part_to_show(phasing: Phasing) -> tuple[float, float]:
    """The range of each axis that the picture shows, in A: the support and a margin."""
    support = to_numpy(phasing.support.values) > 0.5
    if not support.any():
        axis = phasing.density.axes()[0]
        return float(axis[0]), float(axis[-1])
    reach = max(
        float(np.abs(axis[np.any(support, axis=tuple(a for a in range(3) if a != number))]).max())
        for number, axis in enumerate(phasing.density.axes())
    )
    whole = float(np.abs(phasing.density.axes()[0]).max())
    reach = min(reach * (1 + 2 * MARGIN) + phasing.density.voxel_size[0], whole)
    return -reach, reach


def _draw_plane(
    axes: "Axes",
    plane: NDArray[np.float64],
    phasing: Phasing,
    across: int,
    seen: tuple[float, float],
    limits: tuple[float, float],
) -> "AxesImage":
    """Draw a plane; its first axis runs to the right and the second one up."""
    right, up = (a for a in range(3) if a != across)
    ends = []
    for a in (right, up):
        axis, step = phasing.density.axes()[a], phasing.density.voxel_size[a]
        ends += [float(axis[0] - step / 2), float(axis[-1] + step / 2)]
    shown = axes.imshow(
        plane.T, origin="lower", extent=(ends[0], ends[1], ends[2], ends[3]), cmap="magma",
        vmin=limits[0], vmax=limits[1], interpolation="spline36",  # goes through the values of the voxels
    )  # fmt: skip
    axes.set(xlim=seen, ylim=seen, xlabel=f"{'xyz'[right]} (Å)", ylabel=f"{'xyz'[up]} (Å)")
    axes.tick_params(labelsize=SMALL)
    return shown


def _finish(axes: "Axes") -> None:
    axes.tick_params(labelsize=SMALL)
    axes.grid(alpha=0.2, lw=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
