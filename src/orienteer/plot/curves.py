"""How a reconstruction went: curves over its iterations, and the radial curves of one of them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A step as the event log keeps it: names and numbers.
StepRecord = Mapping[str, Any]


def series(steps: Sequence[StepRecord], name: str) -> NDArray[np.float64]:
    """One number of each step, (n_steps,); NaN where a step has none.

    >>> series([{"change": 0.5}, {"change": None}, {}], "change")
    array([0.5, nan, nan])
    """
    return numbers([step.get(name) for step in steps])


def numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    """The values as float64, NaN for what is missing."""
    return np.array([np.nan if value is None else value for value in values], np.float64)


def draw_curves(axes: "Sequence[Axes]", steps: Sequence[StepRecord]) -> None:
    """Log-likelihood, change, temperature and resolution per iteration, each on one of four axes.

    A dotted line stands where the grid of orientations became another one.
    """
    iteration = series(steps, "iteration")
    beta = series(steps, "inverse_temperature")
    curves = (
        ("log-likelihood per frame", series(steps, "log_likelihood"), False),
        ("change of the intensity", series(steps, "change"), True),
        ("temperature", np.divide(1, beta, out=np.full_like(beta, np.nan), where=beta > 0), True),
        ("resolution (Å)", series(steps, "resolution_A"), False),
    )
    for panel, (title, values, logarithmic) in zip(axes, curves, strict=True):
        panel.set_title(title, fontsize=10)
        _draw_curve(panel, iteration, values, logarithmic, "C0")
        for change in _grid_changes(steps):
            panel.axvline(change, color="0.6", lw=0.8, ls=":")
    agreement = series(steps, "sentinel_agreement_deg")
    if np.isfinite(agreement).any():
        beside = axes[3].twinx()
        _draw_curve(beside, iteration, agreement, False, "C1")
        beside.set_ylabel("sentinels agree to (deg)", color="C1", fontsize=8)
        beside.grid(False)


def _draw_curve(
    axes: "Axes", iteration: NDArray[np.float64], values: NDArray[np.float64], logarithmic: bool, colour: str
) -> None:
    from matplotlib.ticker import MaxNLocator

    seen = np.isfinite(values) & ((values > 0) | (not logarithmic))
    if seen.any():
        axes.plot(iteration[seen], values[seen], color=colour, lw=1.3, marker=".", markersize=3)
        if logarithmic:
            axes.set_yscale("log")
    axes.set_xlabel("iteration", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)


def _grid_changes(steps: Sequence[StepRecord]) -> list[float]:
    """The iterations that began with another grid of orientations than the one before."""
    return [
        after["iteration"] - 0.5
        for before, after in pairwise(steps)
        if before.get("grid_level") != after.get("grid_level")
    ]


def draw_radial(axes: "Axes", radial: Mapping[str, Sequence[float | None]]) -> None:
    """Mean intensity over q, and how far the two halves of the frames agree there.

    radial : ``q_inv_A``, ``intensity`` and, where there are halves, ``half_correlation``; equal lengths.
    """
    q, intensity = numbers(radial.get("q_inv_A", ())), numbers(radial.get("intensity", ()))
    axes.set_title("radial mean and agreement of the halves", fontsize=10)
    axes.set_xlabel("q (1/Å)", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    seen = np.isfinite(intensity) & (intensity > 0)
    if seen.any():
        axes.semilogy(q[seen], intensity[seen], color="C3", lw=1.4)
    axes.set_ylabel("mean intensity", color="C3", fontsize=9)
    correlation = numbers(radial.get("half_correlation") or ())
    seen = np.isfinite(correlation)
    if seen.any():
        beside = axes.twinx()
        beside.plot(q[seen], correlation[seen], color="C0", lw=1.4)
        beside.axhline(0.5, color="C0", lw=0.6, ls=":")
        beside.set_ylim(min(0.0, float(correlation[seen].min())) - 0.05, 1.05)
        beside.set_ylabel("correlation of the halves", color="C0", fontsize=9)
        beside.tick_params(labelsize=8)


def draw_fluence(axes: "Axes", fluence: NDArray[np.floating[Any]]) -> None:
    """How the pulses' fluence was distributed, as found; its mean is 1."""
    axes.set_title("fluence of the frames (mean 1)", fontsize=10)
    axes.set_xlabel("fluence", fontsize=9)
    axes.set_ylabel("frames", fontsize=9)
    axes.tick_params(labelsize=8)
    fluence = fluence[np.isfinite(fluence) & (fluence > 0)]
    if not len(fluence):
        return
    n_bins = min(60, max(10, len(fluence) // 10))
    low, high = np.percentile(fluence, [0.5, 99.5])
    if high > 30 * low:
        axes.set_xscale("log")
        axes.hist(fluence, bins=np.geomspace(fluence.min(), fluence.max() * 1.001, n_bins + 1).tolist())
    else:
        axes.hist(fluence, bins=n_bins, color="C0", alpha=0.85)
    median = float(np.median(fluence))
    axes.axvline(median, color="k", lw=1, ls="--", label=f"median {median:.3g}")
    axes.legend(frameon=False, fontsize=8)
