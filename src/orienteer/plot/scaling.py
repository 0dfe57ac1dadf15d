"""Curves of a performance model beside what was measured here and what others have published."""

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


def plot_strong(
    emc: Mapping[str, list[Prediction]], mtip: Mapping[str, list[Prediction]], measured: Mapping[str, float]
) -> "Figure":
    """The same problem on more and more GPUs, EMC and M-TIP.

    emc, mtip : curves by name; measured : seconds on one GPU, for the curves of the same name.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.8), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    _draw_curves(left, emc)
    for colour, (name, _) in zip(_COLOURS, emc.items(), strict=False):
        if name in measured:
            left.plot([1], [measured[name]], "o", color=colour, ms=8)
    left.plot([], [], "ok", label="measured on one H200")
    for marker, facts in zip("s^", EKEBERG, strict=True):
        label = f"published: {facts.problem.n_pixels:,} pixels, GTX 680 (Ekeberg et al.)"
        left.plot(facts.ranks, facts.seconds, marker, color="0.25", mfc="none", label=label)
    left.set_title(f"EMC, one iteration ({MODEL})", fontsize=11)
    _draw_curves(right, mtip)
    right.axvline(SPINIFEL_LAST_GAIN, color="0.25", lw=1.0, ls=":")
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
    """As many frames for every rank: the model to thousands of GPUs, and ranks of a small machine.

    runs : of ranks that were measured, as ``bench/scaling.py weak`` keeps them; cores : that they shared.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.4), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    for colour, shape in zip(_COLOURS, ("1xN", "Nx1"), strict=False):
        own = [run for run in runs if run["mesh"] == shape.replace("N", str(run["ranks"]))]
        ranks = [run["ranks"] for run in own]
        words = "frames shared" if shape == "1xN" else "orientations shared"
        left.plot(ranks, [run["work_seconds"] for run in own], "o-", color=colour, label=f"{words}, measured")
        left.plot(
            ranks, [run["model_work_seconds"] for run in own], "--", color=colour, label=f"{words}, model"
        )
    left.set_ylim(bottom=0)
    left.set_xticks(sorted({run["ranks"] for run in runs}))
    left.set_xlabel(f"ranks, one thread each, on {cores} shared cores")
    left.set_ylabel("processor seconds of work per iteration and rank")
    left.set_title(f"EMC on {cores} cores: work of a rank, as many frames each", fontsize=11)
    left.legend(frameon=False, fontsize=8)
    _draw_curves(right, curves)
    for colour, curve in zip(_COLOURS, curves.values(), strict=False):
        sent = [each.stages["collectives"] for each in curve[1:]]
        right.plot([each.n_ranks for each in curve[1:]], sent, ":", color=colour, lw=1)
    right.plot([], [], ":k", lw=1, label="of it collectives")
    right.set_title(f"as many frames for every GPU ({MODEL})", fontsize=11)
    _finish(right, "GPUs", "seconds per iteration")
    return figure


def plot_largest(curves: Mapping[str, list[Prediction]]) -> "Figure":
    """How many frames the devices of so many nodes hold, and how long an iteration over them takes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        nodes = [each.n_ranks / each.machine.ranks_per_node for each in curve]
        left.plot(nodes, [each.problem.n_frames for each in curve], "--", color=colour, label=name)
        right.plot(nodes, [each.seconds for each in curve], "--", color=colour, label=name)
    left.set_title("frames that the devices hold (model)", fontsize=11)
    right.set_title("one iteration over all of them (model)", fontsize=11)
    _finish(left, "nodes of 8 GPUs", "frames")
    _finish(right, "nodes of 8 GPUs", "seconds")
    return figure


def _draw_curves(axes: "Axes", curves: Mapping[str, list[Prediction]]) -> None:
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        half = [share >= 0.5 for share in efficiency(curve)]
        last = curve[int(np.flatnonzero(half)[-1])] if any(half) else curve[0]
        ranks = [each.n_ranks for each in curve]
        axes.plot(ranks, [each.seconds for each in curve], "--", color=colour, label=name)
        axes.plot([last.n_ranks], [last.seconds], "|", color=colour, ms=14, mew=2)
    axes.plot([], [], "|k", ms=10, mew=2, label="last with an efficiency of one half")


def _finish(axes: "Axes", across: str, up: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.25, which="major")
    axes.legend(
        frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, columnspacing=1.2
    )
