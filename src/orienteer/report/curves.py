"""The charts of a report: curves over the iterations, radial curves, and histograms of the frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.plot.curves import StepRecord, new_beginnings, spans_decades
from orienteer.report.chart import Chart, Curve, Guide
from orienteer.report.plain_values import as_numbers
from orienteer.run.pose_agreement import pose_agreement_deg

ITERATION = "iteration"
Q = "q (1/Å)"
_MOST_DOTS = 60


def step_charts(steps: Sequence[StepRecord]) -> list[Chart]:
    """Log-likelihood, change, temperature, resolution and agreement of poses over the iterations."""
    guides = [Guide(place, vertical=True) for place in new_beginnings(steps)]
    iterations = _of(steps, "iteration")
    temperature = [
        1 / beta if beta is not None and beta > 0 else None for beta in _of(steps, "inverse_temperature")
    ]
    poses = [_poses_deg(step) for step in steps]
    reach = [
        _curve(steps, "agrees_to_A", "halves agree to"),
        Curve("data reach to", iterations, _of(steps, "resolution_A"), None, dashed=True),
    ]

    def over(name: str, title: str, y_label: str, curves: Sequence[Curve], log_y: bool = False) -> Chart:
        return Chart(name, title, ITERATION, y_label, curves, guides, log_y=log_y, whole_x=True)

    return [
        over("log-likelihood", "Log-likelihood", "nats per frame", [_curve(steps, "log_likelihood")]),
        over("change", "Change of the intensity", "relative rms change", [_curve(steps, "change")], True),
        over("temperature", "Temperature", "temperature", [Curve("", iterations, temperature)], True),
        over("resolution", "Resolution", "resolution (Å)", reach),
        over(
            "poses",
            "Agreement of the halves on poses",
            "median angle (degrees)",
            [Curve("", iterations, poses)],
        ),
    ]


def radial_charts(radial: Mapping[str, Any], agrees_to_A: float | None) -> list[Chart]:
    """Mean intensity over q, and the correlation of the two halves of the run over q.

    radial : ``q_inv_A``, ``intensity`` and, if there are halves, ``half_correlation`` of the last step.
    """
    q = as_numbers(radial.get("q_inv_A"))
    reach = [Guide(1 / agrees_to_A, f"{agrees_to_A:.3g} Å", vertical=True)] if agrees_to_A else []
    return [
        Chart(
            "radial-mean", "Radial mean of the intensity", Q, "photons per pixel",
            [Curve("", q, as_numbers(radial.get("intensity")))], log_y=True, resolution_above=True,
        ),
        Chart(
            "half-correlation", "Correlation of the two halves of the run", Q, "correlation",
            [Curve("", q, as_numbers(radial.get("half_correlation")))], [Guide(0.5, "0.5"), *reach],
            y_range=(0.0, 1.0), resolution_above=True,
        ),
    ]  # fmt: skip


def histogram(name: str, title: str, x_label: str, values: NDArray[np.floating[Any]]) -> Chart:
    """A histogram of a value of the frames; its axis is logarithmic if most span a factor of more than 30."""
    good = values[np.isfinite(values) & (values >= 0)]
    if not len(good) or np.ptp(good) <= 1e-6 * good.max():
        return Chart(name, title, x_label, "frames")
    logarithmic = spans_decades(good)
    if logarithmic and (n_zero := int((good == 0).sum())):
        x_label = f"{x_label}; {n_zero:,} zeros not shown"
        good = good[good > 0]
    n_bins = int(np.clip(np.sqrt(len(good)) * 1.5, 8, 60))
    edges = (
        np.geomspace(good.min(), good.max() * (1 + 1e-9), n_bins + 1)
        if logarithmic
        else np.linspace(good.min(), good.max(), n_bins + 1)
    )
    counts, _ = np.histogram(good, edges)
    median = float(np.median(good))
    words = f"median {median:,.0f}" if median >= 1000 else f"median {median:.3g}"
    return Chart(
        name, title, x_label, "frames", bars=(edges.tolist(), counts.tolist()), log_x=logarithmic,
        guides=[Guide(median, words, vertical=True)],
    )  # fmt: skip


def _of(steps: Sequence[StepRecord], name: str) -> list[float | None]:
    return as_numbers([step.get(name) for step in steps])


def _curve(steps: Sequence[StepRecord], name: str, label: str = "") -> Curve:
    return Curve(label, _of(steps, "iteration"), _of(steps, name), dots=len(steps) < _MOST_DOTS)


def _poses_deg(step: StepRecord) -> float | None:
    try:
        return pose_agreement_deg(
            step.get("sentinel_agreement_deg"),
            step["iteration"],
            step.get("perplexity"),
            step.get("n_rotations") or 0,
        )
    except TypeError:  # a damaged line of the log, with something other than numbers
        return None
