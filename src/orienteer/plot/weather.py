"""The computational weather plot: what every rank of a run did when, and how fast."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.plot.words import plain_text
from orienteer.scaling.weather import STAGES, Weather

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELLS = 600
# Orienting is coloured by its rate; time lost has strong colours, other work pale ones.
COLOURS = {
    "orient": "#35978f", "temperature": "#b8c4d6", "solve": "#7f95b8", "phase": "#56719e",
    "nuisances": "#9db1a1", "sentinels": "#c9b79c", "refine": "#a58fb5", "other": "#f4efe0",
    "read": "#e31a1c", "wait": "#dcdcdc", "save": "#6a3d9a",
}  # fmt: skip
_WORDS = {
    "orient": "orients frames", "temperature": "chooses the temperature", "solve": "makes new models",
    "phase": "phases", "nuisances": "fluence, background", "sentinels": "orients sentinels",
    "refine": "refines poses", "other": "other work", "read": "waits for frames",
    "wait": "waits for other ranks", "save": "writes files",
}  # fmt: skip
# The slowest and fastest relative rates (1: the usual rate) with a colour of their own, and the colours of
# some rates.  Usual rates have calm colours; rates slow enough to be reported in words stand out.
_SLOWEST, _FASTEST = 0.25, 1.4
_RATES = (
    (0.25, "#4d2600"),
    (0.5, "#b35806"),
    (0.7, "#e8a33d"),
    (0.85, "#a9d3c8"),
    (1.0, "#35978f"),
    (1.4, "#01564c"),
)
# A rank below this share of the usual rate is slow, and is drawn brown.
_SLOW, _SLOW_COLOUR = 0.7, "#7d3f03"
_TICKS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
# With up to this many ranks, each row of the picture has a name; more would not be legible.
_NAMED = 40


def plot_weather(weather: Weather, findings: Sequence[str] = (), title: str = "") -> "Figure":
    """Rate of each rank over time, what ranks do, frames per second of all ranks, and the findings.

    findings : sentences below the title.
    """
    from matplotlib.figure import Figure

    lines = [part for text in findings for part in textwrap.wrap(text, 150, subsequent_indent="   ")]
    n_ranks = len(weather.ranks)
    map_inches = min(7.0, max(1.2, 0.22 * n_ranks))
    head_inches = 0.7 + 0.21 * len(lines)
    figure = Figure(figsize=(13, head_inches + map_inches + 4.2), layout="constrained", dpi=110)
    parts: Any = figure.subfigures(2, 1, height_ratios=[head_inches, map_inches + 4.2])
    head, body = parts
    head.text(0.01, 1 - 0.15 / head_inches, plain_text(title), fontsize=13, va="top", weight="bold")
    words = "\n".join(plain_text(line) for line in lines)
    head.text(0.01, 1 - 0.47 / head_inches, words, fontsize=10, va="top", linespacing=1.35)
    rate, ranks, doing = body.subplots(3, 1, sharex=True, height_ratios=[1.1, map_inches, 1.6])
    what, relative = weather.cells(_CELLS)
    _draw_rate(rate, weather)
    picture = _draw_ranks(ranks, weather, what, relative)
    _draw_doing(doing, weather, what, has_slow=bool((relative < _SLOW).any()))
    bar = body.colorbar(picture, ax=[rate, ranks, doing], shrink=0.5, aspect=30, pad=0.01, extend="both")
    bar.set_ticks(_TICKS, labels=[f"{tick:g}" for tick in _TICKS], minor=False)
    bar.minorticks_off()
    bar.set_label("rate over the usual one of the iteration", fontsize=9)
    return figure


def _draw_rate(axes: "Axes", weather: Weather) -> None:
    seconds = (np.arange(_CELLS) + 0.5) * weather.seconds / _CELLS
    axes.fill_between(seconds, weather.frames_per_second(_CELLS), color=COLOURS["orient"], lw=0, step="mid")
    axes.set_ylabel("frames / s\nof all ranks", fontsize=9)
    axes.set_ylim(bottom=0)
    began = sorted(weather.iterations.items())
    # Numbers of iterations are above it, far enough apart to be read.
    last = -np.inf
    for number, start in began:
        axes.axvline(start, color="0.4", lw=0.5, ls=":")
        if start - last > weather.seconds / 25:
            axes.annotate(
                str(number), (start, 1.0), xycoords=("data", "axes fraction"), xytext=(1, 2),
                textcoords="offset points", fontsize=8, color="0.3",
            )  # fmt: skip
            last = start
    axes.annotate(
        "iteration", (0, 1.0), xycoords="axes fraction", xytext=(-4, 2), textcoords="offset points",
        fontsize=8, color="0.3", ha="right",
    )  # fmt: skip


def _draw_ranks(axes: "Axes", weather: Weather, what: NDArray[np.int8], relative: NDArray[np.float32]) -> Any:
    """Draw the map itself: a row per rank, coloured by what it does, or by its rate while it orients."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgb

    norm = LogNorm(_SLOWEST, _FASTEST)
    colours = [(float(norm(rate)), colour) for rate, colour in _RATES]
    scale = ScalarMappable(norm, LinearSegmentedColormap.from_list("rates", colours))
    rgb = np.ones((*what.shape, 3))
    for number, name in enumerate(STAGES):
        rgb[what == number] = to_rgb(COLOURS[name])
    oriented = np.isfinite(relative)
    if oriented.any():
        rgb[oriented] = scale.to_rgba(np.clip(relative[oriented], _SLOWEST, _FASTEST))[:, :3]
    n, seconds = len(weather.ranks), max(weather.seconds, 1e-9)
    axes.imshow(
        rgb, aspect="auto", interpolation="nearest", extent=(0.0, seconds, n - 0.5, -0.5),
    )  # fmt: skip
    for start in weather.iterations.values():
        axes.axvline(start, color="white", lw=0.4, alpha=0.6)
    if n <= _NAMED:
        hosts = {rank.host for rank in weather.ranks}
        axes.set_yticks(range(n))
        axes.set_yticklabels(
            [f"{rank.rank}  {rank.host}" if len(hosts) > 1 else str(rank.rank) for rank in weather.ranks],
            fontsize=8,
        )
    axes.set_ylabel("rank", fontsize=9)
    return scale


def _draw_doing(axes: "Axes", weather: Weather, what: NDArray[np.int8], has_slow: bool) -> None:
    """Draw bands: the share of all ranks in each activity."""
    from matplotlib.patches import Patch

    seconds = (np.arange(_CELLS) + 0.5) * weather.seconds / _CELLS
    present = [number for number in range(len(STAGES)) if (what == number).any()]
    shares = [(what == number).mean(axis=0) for number in present]
    if shares:
        axes.stackplot(
            seconds, shares, lw=0, step="mid",
            colors=[COLOURS[STAGES[number]] for number in present],
            labels=[_WORDS[STAGES[number]] for number in present],
        )  # fmt: skip
        handles: list[Any] = axes.get_legend_handles_labels()[0]
        if has_slow:
            handles.insert(1, Patch(color=_SLOW_COLOUR, label="orients slowly (bar on the right)"))
        axes.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.32), ncols=6, frameon=False,
            fontsize=8, columnspacing=1.2,
        )  # fmt: skip
    axes.set_ylim(0, 1)
    axes.set_xlim(0, max(weather.seconds, 1e-9))
    axes.set_ylabel("share\nof ranks", fontsize=9)
    axes.set_xlabel("seconds since the first stage", fontsize=9)
