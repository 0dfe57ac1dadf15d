"""Curves of correlation over resolution, and two volumes next to each other."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.comparison import Comparison
from orienteer.compare.criteria import Resolution
from orienteer.compare.fsc import Fsc
from orienteer.compare.phase_randomisation import MaskedFsc
from orienteer.compute.arrays import to_numpy
from orienteer.plot.volume import PLANES, draw_slices
from orienteer.plot.words import plain_text
from orienteer.validate.result import CRITERION, Validation
from orienteer.volume.volume import Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_comparison(found: Comparison, first: str = "first", second: str = "second") -> "Figure":
    """The curve of a comparison, and slices through both volumes after alignment."""
    figure, axes, rows = _curve_and_rows()
    draw_fsc(axes, found.curve, _name_of_curve(found))
    if found.masked is not None:
        _draw_masked(axes, found.masked)
    draw_threshold(axes, found.curve, found.threshold, found.criterion, found.resolution)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    hand = "" if found.hand is None else f", hand {'kept' if found.hand == 1 else 'mirrored'}"
    axes.set_title(f"correlation {found.correlation:.3f}{hand}", fontsize=11)
    _draw_volumes(rows, (found.reference, found.aligned), (first, f"{second}, aligned"))
    return figure


def plot_validation(found: Validation) -> "Figure":
    """How far two halves agree: curve and slices of their densities, or the curve of their intensities."""
    figure, axes, rows = _curve_and_rows()
    figure.suptitle(textwrap.fill(plain_text(found.statement), 150), fontsize=11)
    if found.maps is None:
        q, correlation = found.intensity.q_inv_A, found.intensity.correlation
        axes.plot(q, correlation, color="C0", lw=1.8, label="intensities of the halves")
        axes.set(xlabel="q (1/Å)", ylabel="correlation", ylim=(-0.05, 1.05))
    else:
        curves = found.maps.curves
        draw_fsc(axes, curves.corrected, "corrected for the mask")
        _draw_masked(axes, curves)
        level = np.full(len(curves.corrected.q_inv_A), float(CRITERION))
        draw_threshold(axes, curves.corrected, level, CRITERION, found.maps.resolutions[CRITERION])
        _draw_volumes(rows, (found.maps.first, found.maps.second), ("first half", "second half, aligned"))
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    return figure


def _curve_and_rows() -> "tuple[Figure, Axes, Sequence[Any]]":
    """A figure with room for a curve on the left, and for two rows of slices on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 6.6), layout="constrained", dpi=110)
    curve, slices = figure.subfigures(1, 2, width_ratios=(1, 1.7), squeeze=False)[0]
    return figure, curve.subplots(), slices.subfigures(2, 1, squeeze=False)[:, 0]


def _draw_volumes(rows: Sequence[Any], volumes: Sequence[Volume], names: Sequence[str]) -> None:
    for row, volume, name in zip(rows, volumes, names, strict=True):
        row.suptitle(plain_text(name), fontsize=11)
        shown = Volume(to_numpy(volume.values), volume.voxel_size, volume.space, volume.origin)
        draw_slices(row.subplots(1, len(PLANES)), shown)


def _draw_masked(axes: "Axes", masked: MaskedFsc) -> None:
    """Draw the curves behind the corrected one; that of random phases only where phases are random."""
    curves = [(masked.unmasked, "unmasked", "0.5")]
    if masked.random_from_inv_A is not None:
        curves.append((masked.masked, "masked", "C1"))
    for curve, label, colour in curves:
        axes.plot(curve.q_inv_A[1:], curve.correlation[1:], color=colour, lw=1.0, label=label)
    if masked.random_from_inv_A is not None:
        beyond = masked.random.q_inv_A >= masked.random_from_inv_A
        q, correlation = masked.random.q_inv_A[beyond], masked.random.correlation[beyond]
        axes.plot(q, correlation, color="C3", lw=1.0, label="masked, random phases")


def draw_fsc(axes: "Axes", fsc: Fsc, label: str = "") -> None:
    """Draw the correlation of every shell but the central one over q, with the resolution in A on top."""
    axes.plot(fsc.q_inv_A[1:], fsc.correlation[1:], color="C0", lw=1.8, marker=".", markersize=4, label=label)
    axes.axhline(0, color="0.7", lw=0.8)
    edge = float(fsc.q_inv_A[-1])
    lowest = float(np.nanmin(fsc.correlation[1:], initial=0.0))
    axes.set(xlim=(0, edge), ylim=(min(-0.05, lowest - 0.05), 1.05))
    axes.set_xlabel("q (1/Å)")
    axes.set_ylabel("correlation")
    axes.grid(alpha=0.25)
    axes.locator_params(axis="x", nbins=6)
    above = axes.secondary_xaxis("top")
    ticks = [float(q) for q in axes.get_xticks() if 0 < q <= edge]
    above.set_xticks(ticks, [f"{1 / q:.3g}" for q in ticks])
    above.set_xlabel("resolution (Å)")


def draw_threshold(
    axes: "Axes", fsc: Fsc, threshold: NDArray[np.float64], name: str, resolution: Resolution
) -> None:
    """Draw the threshold of a criterion, and mark where the curve falls below it."""
    axes.plot(fsc.q_inv_A[1:], threshold[1:], color="0.2", lw=1.0, ls="--", label=name)
    if resolution.resolution_A is None or resolution.reaches_edge:
        return
    q = resolution.q_inv_A
    level = float(np.interp(q, fsc.q_inv_A, threshold))
    axes.plot([q, q], [axes.get_ylim()[0], level], color="0.2", lw=1.0, ls=":")
    axes.annotate(
        f"{resolution.resolution_A:.3g} Å", (q, level), xytext=(6, 6), textcoords="offset points", fontsize=10
    )


def _name_of_curve(found: Comparison) -> str:
    if found.kind == "intensities":
        return "speckles of both intensities"
    if found.masked is None:
        return "Fourier shell correlation"
    how = "under the mask" if found.masked.random_from_inv_A is None else "corrected for the mask"
    return f"Fourier shell correlation, {how}"
