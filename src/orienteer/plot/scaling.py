"""Curves of a performance model beside our own measurements and published ones."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.scaling.curves import efficiency
from orienteer.scaling.prediction import Prediction
from orienteer.scaling.published import EKEBERG, SPINIFEL_LAST_GAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#1b6ca8", "#c8553d", "#4c956c", "#7a5195")
MODEL = "dashed lines: model"
# Beyond the mark on a curve the efficiency is below one half.
_HALF_LOST = "beyond this mark a GPU does less than half the work of a single GPU"


def plot_strong(
    emc: Mapping[str, list[Prediction]], mtip: Mapping[str, list[Prediction]], measured: Mapping[str, float]
) -> "Figure":
    """The same problem on more and more GPUs, for EMC and M-TIP.

    emc, mtip : curves by name; measured : seconds on one GPU, for the curves of the same name.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.2), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    _draw_curves(left, emc)
    for colour, (name, _) in zip(_COLOURS, emc.items(), strict=False):
        if name in measured:
            left.plot([1], [measured[name]], "o", color=colour, ms=8)
    left.plot([], [], "ok", label="measured on one H200")
    for marker, facts in zip("s^", EKEBERG, strict=True):
        label = f"published: {_spaced(facts.problem.n_pixels)} pixels, GTX 680 (Ekeberg et al.)"
        left.plot(facts.ranks, facts.seconds, marker, color="0.25", mfc="none", label=label)
    left.set_title(f"EMC, one iteration ({MODEL})", fontsize=11)
    _draw_curves(right, mtip)
    right.axvline(SPINIFEL_LAST_GAIN, color="0.25", lw=1.8, ls=":")
    right.annotate(
        "published: SpiniFEL gains nothing\nbeyond 512 ranks (131 072 images,\nFrontier, Blaschke et al.)",
        (SPINIFEL_LAST_GAIN, 0.97), xycoords=("data", "axes fraction"), xytext=(-6, 0),
        textcoords="offset points", fontsize=8, va="top", ha="right", color="0.25",
    )  # fmt: skip
    right.set_title(f"M-TIP, one generation ({MODEL})", fontsize=11)
    for axes in (left, right):
        _finish(axes, "GPUs", "seconds")
    return figure


def plot_weak(
    curves: Mapping[str, list[Prediction]], runs: Sequence[Mapping[str, Any]], cores: int
) -> "Figure":
    """A fixed number of frames per rank: the model up to thousands of GPUs, and measurements on one machine.

    runs : the measurements, as ``bench/scaling.py weak`` stores them; cores : number of cores they shared.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.6), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    for colour, shape in zip(_COLOURS, ("1xN", "Nx1"), strict=False):
        own = [run for run in runs if run["mesh"] == shape.replace("N", str(run["ranks"]))]
        ranks = [run["ranks"] for run in own]
        words = "frames shared" if shape == "1xN" else "orientations shared"
        left.plot(ranks, [run["work_seconds"] for run in own], "o-", color=colour, label=f"{words}, measured")
        predicted = [run["model_work_seconds"] for run in own]
        left.plot(ranks, predicted, "--", color=colour, lw=1.8, label=f"{words}, model of busy cores")
    left.set_ylim(bottom=0)
    left.set_xticks(sorted({run["ranks"] for run in runs}))
    left.set_xlabel(f"ranks, one thread each, on {cores} shared cores")
    left.set_ylabel("processor seconds of work per iteration and rank")
    left.set_title(f"EMC on {cores} cores: work of a rank, equal frames per rank", fontsize=11)
    most = max(run["model_work_seconds"] / run["work_seconds"] - 1 for run in runs)
    left.text(
        0.98, 0.03,
        "The model was fitted on cores that were busy with other work.\n"
        f"These cores were free: the model predicts up to {most:.0%} more.",
        transform=left.transAxes, fontsize=9, color="0.25", ha="right",
    )  # fmt: skip
    left.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    _draw_curves(right, curves)
    for colour, curve in zip(_COLOURS, curves.values(), strict=False):
        sent = [each.stages["collectives"] for each in curve[1:]]
        right.plot([each.n_ranks for each in curve[1:]], sent, ":", color=colour, lw=1.8)
    right.plot([], [], ":k", lw=1.8, label="time in which GPUs send to each other")
    right.set_title(f"equal frames per GPU ({MODEL})", fontsize=11)
    _finish(right, "GPUs", "seconds per iteration")
    return figure


def plot_largest(curves: Mapping[str, list[Prediction]]) -> "Figure":
    """How many frames fit on the devices of a number of nodes, and how long an iteration over them takes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        nodes = [each.n_ranks / each.machine.ranks_per_node for each in curve]
        left.plot(nodes, [each.problem.n_frames for each in curve], "--", color=colour, lw=1.8, label=name)
        right.plot(nodes, [each.seconds for each in curve], "--", color=colour, lw=1.8, label=name)
    left.set_title("frames that the devices hold (model)", fontsize=11)
    right.set_title("one iteration over all of them (model)", fontsize=11)
    _finish(left, "nodes of 8 GPUs", "frames", 2)
    _finish(right, "nodes of 8 GPUs", "seconds", 2)
    return figure


def _draw_curves(axes: "Axes", curves: Mapping[str, list[Prediction]]) -> None:
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        half = [share >= 0.5 for share in efficiency(curve)]
        last = curve[int(np.flatnonzero(half)[-1])] if any(half) else curve[0]
        ranks = [each.n_ranks for each in curve]
        axes.plot(ranks, [each.seconds for each in curve], "--", color=colour, lw=1.8, label=name)
        if last is not curve[-1]:
            axes.plot([last.n_ranks], [last.seconds], "|", color=colour, ms=16, mew=2.5)
    axes.plot([], [], "|k", ms=12, mew=2.5, label=_HALF_LOST)


def _finish(axes: "Axes", across: str, up: str, n_columns: int = 1) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: _spaced(value))
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.25, which="major")
    axes.legend(
        frameon=False,
        fontsize=9,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14 if n_columns > 1 else -0.12),
        ncols=n_columns,
        columnspacing=1.2,
    )


def _spaced(number: float) -> str:
    """A whole number with spaces between thousands, as in the documentation."""
    return f"{number:,.0f}".replace(",", " ")
