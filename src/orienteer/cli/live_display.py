"""What a reconstruction says while it works: a live picture on a terminal, one line per step elsewhere."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Protocol, TypeVar

from rich.console import Group
from rich.table import Table
from rich.text import Text

from orienteer.cli.console import messages
from orienteer.compute.progress import listening

T = TypeVar("T")
BARS = " ▁▂▃▄▅▆▇█"
PLAIN_BARS = " .:-=+*#"  # for terminals without Unicode
PLOT_HEIGHT, PLOT_WIDTH = 6, 56
STEPS_SHOWN = 8
HEADER = (
    "step", "stage", "log-likelihood", "change", "temperature", "orientations", "per frame",
    "sentinels", "resolution", "time", "left",
)  # fmt: skip
# What a terminal of 80 columns has no room for.
SPARE = ("stage", "per frame", "resolution")
WIDE_ENOUGH = 110


class Step(Protocol):
    """What any method of reconstruction tells of one of its iterations."""

    @property
    def iteration(self) -> int:
        """Counted from 1."""

    @property
    def stage(self) -> int:
        """Of those through which resolution and orientations become finer, counted from 1."""

    @property
    def n_stages(self) -> int:
        """Stages in all."""

    @property
    def log_likelihood(self) -> float | None:
        """Mean per frame."""

    @property
    def change(self) -> float | None:
        """Relative change of the intensity."""

    @property
    def inverse_temperature(self) -> float | None:
        """1: the likelihood as it stands."""

    @property
    def n_rotations(self) -> int:
        """Orientations that are searched."""

    @property
    def perplexity(self) -> float | None:
        """Orientations that a frame is spread over, in the mean."""

    @property
    def resolution_A(self) -> float | None:
        """Full-period resolution of what takes part."""

    @property
    def sentinel_agreement_deg(self) -> float | None:
        """How far the halves agree on frames that neither has seen."""

    @property
    def seconds(self) -> float:
        """Time that it took."""

    @property
    def seconds_left(self) -> float | None:
        """Time until the end, where that can be told."""

    @property
    def radial(self) -> Mapping[str, Sequence[float | None]]:
        """``q_inv_A``, ``intensity`` and ``half_correlation`` by shell."""


@contextmanager
def show_reconstruction(title: str) -> Iterator[Callable[[Step], None]]:
    """Inside the block, each step that is handed over is shown."""
    if not messages.is_terminal:
        yield lambda step: messages.print(in_a_line(step), markup=False, soft_wrap=True)
        return
    from rich.live import Live

    screen = Screen(title, _bars_for(messages.encoding), messages.width >= WIDE_ENOUGH)
    with (
        Live(get_renderable=screen.render, console=messages, refresh_per_second=4) as live,
        listening(screen.hear),
    ):

        def show(step: Step) -> None:
            screen.add(step)
            live.refresh()

        yield show


class Screen:
    """The last steps as a table, the radial mean of the intensity, and what is being done right now."""

    def __init__(self, title: str, bars: str = BARS, wide: bool = True) -> None:
        self._title = title
        self._bars = bars
        self._wide = wide
        self._steps: list[Step] = []
        self._doing = ""

    def add(self, step: Step) -> None:
        """A step is done."""
        self._steps = [*self._steps, step][-STEPS_SHOWN:]
        self._doing = ""

    def hear(self, what: str, done: int, total: int) -> None:
        """A part of a step has come so far."""
        self._doing = f"{what}: {done:,} of {total:,}"

    def render(self) -> Group:
        """What the terminal shows now."""
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        shown = [i for i, name in enumerate(HEADER) if self._wide or name not in SPARE]
        for i in shown:
            table.add_column(HEADER[i], justify="right", no_wrap=True)
        for step in self._steps:
            cells = in_cells(step)
            table.add_row(*(cells[i] for i in shown))
        plot = radial_plot(self._steps[-1].radial, self._bars) if self._steps else []
        lines = (Text(line, no_wrap=True) for line in plot)
        return Group(Text(self._title, style="bold"), table, *lines, Text(self._doing, style="dim"))


def in_cells(step: Step) -> tuple[str, ...]:
    """A step as one cell for each name of the header; empty where nothing is known."""
    return (
        str(step.iteration),
        f"{step.stage}/{step.n_stages}",
        said(step.log_likelihood, "{:,.2f}".format),
        said(step.change, "{:.2g}".format),
        said(step.inverse_temperature, temperature_in_words),
        f"{step.n_rotations:,}",
        said(step.perplexity, "{:,.3g}".format),
        said(step.sentinel_agreement_deg, "{:.2g} deg".format),
        said(step.resolution_A, "{:.3g} A".format),
        said(step.seconds, time_in_words),
        said(step.seconds_left, time_in_words),
    )


def said(value: float | None, words: Callable[[float], str]) -> str:
    """The value in words, or nothing where there is none.

    >>> said(2.0, "{:.1f} s".format), said(None, str), said(math.nan, str)
    ('2.0 s', '', '')
    """
    return "" if value is None or not math.isfinite(value) else words(value)


def in_a_line(step: Step) -> str:
    """A step in one line of a log file."""
    return "  ".join(f"{name} {cell}" for name, cell in zip(HEADER, in_cells(step), strict=True) if cell)


def temperature_in_words(inverse_temperature: float) -> str:
    """1 is the likelihood as it stands; larger numbers flatten it.

    >>> temperature_in_words(0.25), temperature_in_words(0.0)
    ('4', 'infinite')
    """
    return f"{1 / inverse_temperature:.3g}" if inverse_temperature > 0 else "infinite"


def time_in_words(seconds: float) -> str:
    """A duration with as much detail as one wants to read.

    >>> [time_in_words(s) for s in (0.0123, 4.56, 75, 3725, 100000)]
    ['0.012 s', '4.6 s', '1:15 min', '1:02 h', '27:46 h']
    """
    if seconds < 59.5:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


def radial_plot(radial: Mapping[str, Sequence[float | None]], bars: str = BARS) -> list[str]:
    """The radial mean of the intensity as bars of text, logarithmic; below it how far the halves agree."""
    q_all, intensity = radial.get("q_inv_A", ()), radial.get("intensity", ())
    halves = radial.get("half_correlation", ())
    seen = [
        (q, math.log10(value), half if half is not None and math.isfinite(half) else None)
        for q, value, half in zip_longest(q_all, intensity, halves)
        if q is not None and value is not None and 0 < value < math.inf
    ]
    if len(seen) < 2:
        return []
    q, logarithm, half = zip(*stretch(seen), strict=True)
    low, high = min(logarithm), max(logarithm)
    lines = bar_lines([(value - low) / ((high - low) or 1) for value in logarithm], PLOT_HEIGHT, bars)
    labels = [f"1e{high:+.1f}", *[""] * (PLOT_HEIGHT - 2), f"1e{low:+.1f}"]
    if any(value is not None for value in half):
        lines += bar_lines(half, 1, bars)
        labels.append("halves")
    first, last = (f"{1 / q[end]:.3g} A" if q[end] else "centre" for end in (0, -1))
    lines.append(f"{first}{last:>{PLOT_WIDTH - len(first)}}")
    return ["", *(f"{label:>8} {line}" for label, line in zip([*labels, ""], lines, strict=True))]


def stretch(values: Sequence[T], width: int = PLOT_WIDTH) -> list[T]:
    """As many values as there are columns, taken evenly from the given ones.

    >>> stretch([0, 1, 2, 3, 4], width=3), stretch([0, 1], width=4)
    ([0, 2, 4], [0, 0, 1, 1])
    """
    return [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]


def bar_lines(shares: Iterable[float | None], height: int, bars: str = BARS) -> list[str]:
    """Bars of text, one column for each share between 0 and 1, the top line first; None is a gap.

    >>> bar_lines([0, None, 0.5, 1], 2)
    ['   █', '▁ ██']
    """
    steps = len(bars) - 1
    # The lowest value keeps a trace, to be told from a gap.
    levels = [
        0 if share is None else max(1, round(min(max(share, 0.0), 1.0) * height * steps)) for share in shares
    ]
    return [
        "".join(bars[min(max(level - row * steps, 0), steps)] for level in levels)
        for row in reversed(range(height))
    ]


def _bars_for(encoding: str) -> str:
    return BARS if encoding.lower().startswith("utf") else PLAIN_BARS
