"""Curves of a reconstruction over its iterations, and the radial curves of one iteration."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.plot.ticks import log_ticks
from orienteer.run.pose_agreement import pose_agreement_deg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A step as the event log keeps it: names and numbers.
StepRecord = Mapping[str, Any]
# Smallest height of an axis of resolutions, as a share of its largest value.
_LEAST_ROOM = 0.1


def series(steps: Sequence[StepRecord], name: str) -> NDArray[np.float64]:
    """One number of each step, (n_steps,); NaN if a step does not have it.

    >>> series([{"change": 0.5}, {"change": None}, {}], "change")
    array([0.5, nan, nan])
    """
    return numbers([step.get(name) for step in steps])


def numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    """The values as float64; None becomes NaN."""
    return np.array([np.nan if value is None else value for value in values], np.float64)


def draw_curves(axes: "Sequence[Axes]", steps: Sequence[StepRecord]) -> None:
    """Draw five numbers over the iterations, each on one of the axes.

    They are the log-likelihood, the change, the temperature, the resolution to which the halves agree (grey:
    to which data are used), and the angle to which they agree on poses.  Dotted lines mark where another
    random start, or a finer grid of orientations, begins.
    """
    iteration = series(steps, "iteration")
    beta = series(steps, "inverse_temperature")
    curves = (
        ("log-likelihood per frame", series(steps, "log_likelihood"), False),
        ("change of the intensity", series(steps, "change"), True),
        ("temperature", np.divide(1, beta, out=np.full_like(beta, np.nan), where=beta > 0), True),
        ("halves agree to (Å)", series(steps, "agrees_to_A"), False),
        ("halves agree on poses to (deg)", numbers([_poses_deg(step) for step in steps]), False),
    )
    for panel, (title, values, logarithmic) in zip(axes, curves, strict=True):
        panel.set_title(title, fontsize=10)
        _draw_curve(panel, iteration, values, logarithmic)
        for place in new_beginnings(steps):
            panel.axvline(place, color="0.6", lw=0.8, ls=":")
    reach = series(steps, "resolution_A")
    if np.isfinite(reach).any():
        axes[3].plot(iteration, reach, color="0.6", lw=1.0, ls="--", label="data to")
        axes[3].legend(frameon=False, fontsize=8)
    _give_room(axes[3])


def _give_room(axes: "Axes") -> None:
    """Give an axis a height of at least a share of its values, so that a constant curve looks constant."""
    low, high = axes.get_ylim()
    lacking = _LEAST_ROOM * max(abs(low), abs(high)) - (high - low)
    if axes.lines and lacking > 0:
        axes.set_ylim(low - lacking / 2, high + lacking / 2)


def _poses_deg(step: StepRecord) -> float | None:
    agreement_deg = step.get("sentinel_agreement_deg")
    n_rotations = step.get("n_rotations") or 0
    return pose_agreement_deg(agreement_deg, step["iteration"], step.get("perplexity"), n_rotations)


def _draw_curve(
    axes: "Axes", iteration: NDArray[np.float64], values: NDArray[np.float64], logarithmic: bool
) -> None:
    from matplotlib.ticker import MaxNLocator

    seen = np.isfinite(values) & ((values > 0) | (not logarithmic))
    if seen.any():
        axes.plot(iteration[seen], values[seen], color="C0", lw=1.3, marker=".", markersize=3)
        if logarithmic:
            set_log_scale(axes, values[seen])
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    else:
        say_instead(axes, "nothing yet")
    axes.set_xlabel("iteration", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)


def say_instead(axes: "Axes", words: str) -> None:
    """Write words in the middle of axes that have nothing to draw."""
    axes.text(0.5, 0.5, words, ha="center", va="center", color="0.4", fontsize=9, transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


def set_log_scale(axes: "Axes", values: NDArray[np.float64]) -> None:
    """Set a logarithmic scale for these values, with a few plain numbers as tick labels."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = float(values.min()) / 1.15, float(values.max()) * 1.15
    ticks = log_ticks(low, high)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([f"{tick:.6g}" for tick in ticks]))
    axes.yaxis.set_minor_locator(NullLocator())


def new_beginnings(steps: Sequence[StepRecord]) -> list[float]:
    """Iterations (minus 0.5) at which another random start, stage or grid of orientations begins."""
    return [
        after["iteration"] - 0.5
        for before, after in pairwise(steps)
        if any(before.get(name) != after.get(name) for name in ("start", "stage", "grid_level"))
    ]


def spans_decades(values: NDArray[np.floating[Any]]) -> bool:
    """Whether the nonzero values need a logarithmic axis; outliers such as a few dark frames do not count.

    >>> spans_decades(np.array([0.0, 1e-6, *[1.0] * 98])), spans_decades(np.geomspace(1, 1e4, 50))
    (False, True)
    """
    low, high = np.percentile(values[values > 0], [5, 95])
    return bool(high > 30 * low)


def draw_radial(
    axes: "Axes", radial: Mapping[str, Sequence[float | None]], agrees_to_A: float | None = None
) -> None:
    """Draw the mean intensity and the correlation of the two halves over q.

    agrees_to_A : the resolution to which the halves agree; a line marks it.
    radial : ``q_inv_A``, ``intensity`` and, if there are halves, ``half_correlation``; equal lengths.
    """
    q, intensity = numbers(radial.get("q_inv_A", ())), numbers(radial.get("intensity", ()))
    axes.set_title("radial mean and agreement of the halves", fontsize=10)
    axes.set_xlabel("q (1/Å)", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    seen = np.isfinite(intensity) & (intensity > 0)
    if seen.any():
        axes.plot(q[seen], intensity[seen], color="C3", lw=1.4)
        set_log_scale(axes, intensity[seen])
    else:
        say_instead(axes, "nothing yet")
    axes.set_ylabel("mean intensity (photons per pixel)", color="C3", fontsize=9)
    axes.locator_params(axis="x", nbins=6)
    correlation = numbers(radial.get("half_correlation") or ())
    seen = np.isfinite(correlation)
    if seen.any():
        beside = axes.twinx()
        beside.plot(q[seen], correlation[seen], color="C0", lw=1.4)
        beside.axhline(0.5, color="C0", lw=0.6, ls=":")
        beside.set_ylim(min(0.0, float(correlation[seen].min())) - 0.05, 1.05)
        beside.set_ylabel("correlation of the halves", color="C0", fontsize=9)
        beside.tick_params(labelsize=8)
        if agrees_to_A:
            beside.axvline(1 / agrees_to_A, color="C0", lw=1.0, ls="--", label=f"0.5 at {agrees_to_A:.3g} Å")
            beside.legend(frameon=False, fontsize=8, loc="lower left")


def draw_fluence(axes: "Axes", fluence: NDArray[np.floating[Any]]) -> None:
    """Draw a histogram of the estimated fluence of the frames; its mean is 1."""
    axes.set_title("fluence of the frames (mean 1)", fontsize=10)
    axes.tick_params(labelsize=8)
    fluence = fluence[np.isfinite(fluence) & (fluence >= 0)]
    if not len(fluence):
        say_instead(axes, "nothing yet")
        return
    if np.ptp(fluence) <= 1e-6 * fluence.max():
        say_instead(axes, f"all {counted(len(fluence), 'frame')} have the same fluence")
        return
    axes.set_xlabel("fluence", fontsize=9)
    axes.set_ylabel("frames", fontsize=9)
    n_bins = min(60, max(10, len(fluence) // 10))
    if spans_decades(fluence):
        axes.set_xscale("log")
        seen = fluence[fluence > 0]
        axes.hist(seen, bins=np.geomspace(seen.min(), seen.max() * 1.001, n_bins + 1).tolist())
    else:
        axes.hist(fluence, bins=n_bins, color="C0", alpha=0.85)
    median = float(np.median(fluence))
    axes.axvline(median, color="k", lw=1, ls="--", label=f"median {median:.3g}")
    axes.legend(frameon=False, fontsize=8)
