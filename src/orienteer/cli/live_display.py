"""What a reconstruction shows while it works: a live picture on a terminal, one line per step elsewhere."""

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
from orienteer.compute.words import time_in_words
from orienteer.run.pose_agreement import pose_agreement_deg
from orienteer.run.states import occupancies_in_words

T = TypeVar("T")
BARS = " ▁▂▃▄▅▆▇█"
PLAIN_BARS = " .:-=+*#"  # for terminals without Unicode
PLOT_HEIGHT, PLOT_WIDTH, LABEL_WIDTH = 6, 56, 8
STEPS_SHOWN = 8
_ROUNDING_DEG = 1e-5
# The columns of the table of steps, each with a heading that fits into a narrow column.
HEADER = {
    "step": "step",
    "stage": "stage",
    "log-likelihood": "log-\nlikelihood",
    "change": "change",
    "temperature": "temper-\nature",
    "poses": "poses",
    "poses per frame": "poses\nper frame",
    "poses agree to": "poses\nagree to",
    "halves agree to": "halves\nagree to",
    "data to": "data to",
    "time": "time",
    "left": "left",
}
# The columns that are left out on a narrow terminal, the least important first.
SPARE = ("time", "data to", "poses", "stage", "poses agree to")


class Step(Protocol):
    """What any method of reconstruction reports about an iteration."""

    @property
    def iteration(self) -> int:
        """Counted from 1."""

    @property
    def stage(self) -> int:
        """Number of the stage, counted from 1; resolution and grid become finer from stage to stage."""

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
        """1 over the temperature; 1: the likelihood itself."""

    @property
    def n_rotations(self) -> int:
        """Orientations that are searched."""

    @property
    def perplexity(self) -> float | None:
        """Number of orientations over which a frame is spread; geometric mean over the frames."""

    @property
    def resolution_A(self) -> float | None:
        """Full-period resolution to which pixels orient frames."""

    @property
    def agrees_to_A(self) -> float | None:
        """Full-period resolution to which the halves agree."""

    @property
    def sentinel_agreement_deg(self) -> float | None:
        """Angle in degrees between the poses that the halves give to frames that neither has seen."""

    @property
    def seconds(self) -> float:
        """Duration of the iteration."""

    @property
    def seconds_left(self) -> float | None:
        """Predicted time until the end; None if it cannot be predicted."""

    @property
    def radial(self) -> Mapping[str, Sequence[float | None]]:
        """``q_inv_A``, ``intensity`` and ``half_correlation`` by shell."""


@contextmanager
def show_reconstruction(title: str, of: str = "") -> Iterator[Callable[[Step], None]]:
    """Give the block a function that shows a step.

    of : if there are several runs, which of them this is; each line of a log begins with it.
    """
    if not messages.is_terminal:
        first = f"{of}  " if of else ""
        yield lambda step: messages.print(first + in_a_line(step), markup=False, soft_wrap=True)
        return
    from rich.live import Live

    screen = Screen(title, _bars_for(messages.encoding), messages.width)
    with (
        Live(get_renderable=screen.render, console=messages, refresh_per_second=4) as live,
        listening(screen.hear),
    ):

        def show(step: Step) -> None:
            screen.add(step)
            live.refresh()

        yield show


class Screen:
    """A table of the last steps, the radial mean of the intensity, and the work in progress."""

    def __init__(self, title: str, bars: str = BARS, width: int = 120) -> None:
        self._title = title
        self._bars = bars
        self._width = width
        self._steps: list[Step] = []
        self._doing = ""

    def add(self, step: Step) -> None:
        """Add a step that is done."""
        self._steps = [*self._steps, step][-STEPS_SHOWN:]
        self._doing = ""

    def hear(self, what: str, done: int, total: int) -> None:
        """Note the progress of a part of the current step."""
        self._doing = f"{what}: {done:,} of {total:,}"

    def render(self) -> Group:
        """What the terminal shows now."""
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        rows = [in_cells(step) for step in self._steps]
        shown = columns_that_fit(rows, self._width)
        for name in shown:
            table.add_column(HEADER[name], justify="right", no_wrap=True, vertical="bottom")
        for row in rows:
            table.add_row(*(row[name] for name in shown))
        about = [text for step in self._steps if (text := about_states(step))][-1:]
        plot = radial_plot(self._steps[-1].radial, self._bars, self._width) if self._steps else []
        lines = (Text(line, no_wrap=True) for line in [*about, *plot])
        return Group(Text(self._title, style="bold"), table, *lines, Text(self._doing, style="dim"))


def about_states(step: Step) -> str:
    """The states and the traffic between ranks of a step, and what was decided after it; may be empty."""
    shares = occupancies_in_words(getattr(step, "states", ()))
    sent = getattr(step, "sent_bytes", 0)
    told = shares and f"states {shares}", f"ranks sent {sent / 1e6:.3g} MB" if sent else ""
    return "  ".join(part for part in (*told, getattr(step, "note", "")) if part)


def columns_that_fit(rows: Sequence[Mapping[str, str]], width: int) -> list[str]:
    """The names of the columns for which the terminal has room; only those of SPARE are left out."""

    def wide(name: str) -> int:
        return 1 + max(len(text) for text in (*HEADER[name].split("\n"), *(row[name] for row in rows)))

    shown = list(HEADER)
    for name in SPARE:
        if sum(map(wide, shown)) - 1 <= width:
            break
        shown.remove(name)
    return shown


def in_cells(step: Step) -> dict[str, str]:
    """A step as one cell for each name of the header; unknown values are empty."""
    poses_deg = pose_agreement_deg(
        step.sentinel_agreement_deg, step.iteration, step.perplexity, step.n_rotations
    )
    cells = (
        str(step.iteration),
        f"{step.stage}/{step.n_stages}",
        said(step.log_likelihood, "{:,.2f}".format),
        said(step.change, "{:.2g}".format),
        said(step.inverse_temperature, temperature_in_words),
        f"{step.n_rotations:,}",
        said(step.perplexity, number_in_words),
        said(poses_deg, angle_in_words),
        said(step.agrees_to_A, "{:.3g} A".format),
        said(step.resolution_A, "{:.3g} A".format),
        said(step.seconds, time_in_words),
        said(step.seconds_left, time_in_words),
    )
    return dict(zip(HEADER, cells, strict=True))


def said(value: float | None, words: Callable[[float], str]) -> str:
    """The value in words, or an empty text if it is missing or not finite.

    >>> said(2.0, "{:.1f} s".format), said(None, str), said(math.nan, str)
    ('2.0 s', '', '')
    """
    return "" if value is None or not math.isfinite(value) else words(value)


def in_a_line(step: Step) -> str:
    """A step in one line of a log file."""
    cells = [f"{name} {cell}" for name, cell in in_cells(step).items() if cell]
    about = about_states(step)
    return "  ".join([*cells, about] if about else cells)


def number_in_words(value: float) -> str:
    """A number to three digits, with an exponent only if it is very large or small.

    >>> [number_in_words(value) for value in (63.1, 0.134, 1234.5, 1e9, 2.5e-7, 0.0)]
    ['63.1', '0.134', '1,234', '1e+09', '2.5e-07', '0']
    """
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def temperature_in_words(inverse_temperature: float) -> str:
    """The temperature: 1 is the likelihood itself; larger numbers flatten it.

    >>> temperature_in_words(0.25), temperature_in_words(0.0)
    ('4', 'infinite')
    """
    return number_in_words(1 / inverse_temperature) if inverse_temperature > 0 else "infinite"


def angle_in_words(degrees: float) -> str:
    """An angle with two digits and no exponent; angles of mere rounding are shown as 0.

    >>> angle_in_words(0.123), angle_in_words(4.56), angle_in_words(123.4), angle_in_words(8e-15)
    ('0.12 deg', '4.6 deg', '123 deg', '0 deg')
    """
    if degrees < _ROUNDING_DEG:
        return "0 deg"
    return f"{degrees:.2g} deg" if degrees < 99.5 else f"{degrees:.0f} deg"


def radial_plot(
    radial: Mapping[str, Sequence[float | None]], bars: str = BARS, width: int = 120
) -> list[str]:
    """The logarithm of the radial mean intensity as bars of text; below it, the correlation of the halves.

    width : columns of the terminal.
    """
    n_columns = min(PLOT_WIDTH, max(10, width - LABEL_WIDTH - 1))
    q_all, intensity = radial.get("q_inv_A", ()), radial.get("intensity", ())
    halves = radial.get("half_correlation", ())
    seen = [
        (q, math.log10(value), half if half is not None and math.isfinite(half) else None)
        for q, value, half in zip_longest(q_all, intensity, halves)
        if q is not None and value is not None and 0 < value < math.inf
    ]
    if len(seen) < 2:
        return []
    q, logarithm, half = zip(*stretch(seen, n_columns), strict=True)
    low, high = min(logarithm), max(logarithm)
    lines = bar_lines([(value - low) / ((high - low) or 1) for value in logarithm], PLOT_HEIGHT, bars)
    top, bottom = (number_in_words(float(f"{10**end:.2g}")) for end in (high, low))
    labels = [top, *[""] * (PLOT_HEIGHT - 2), bottom]
    if any(value is not None for value in half):
        lines += bar_lines(half, 1, bars)
        labels.append("halves")
    first, last = (f"{1 / q[end]:.3g} A" if q[end] else "centre" for end in (0, -1))
    lines.append(f"{first}{last:>{n_columns - len(first)}}")
    return ["", *(f"{label:>{LABEL_WIDTH}} {line}" for label, line in zip([*labels, ""], lines, strict=True))]


def stretch(values: Sequence[T], width: int = PLOT_WIDTH) -> list[T]:
    """``width`` values, taken at even steps from the given ones; values repeat if there are too few.

    >>> stretch([0, 1, 2, 3, 4], width=3), stretch([0, 1], width=4)
    ([0, 2, 4], [0, 0, 1, 1])
    """
    return [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]


def bar_lines(shares: Iterable[float | None], height: int, bars: str = BARS) -> list[str]:
    """Bars of text, one column per share between 0 and 1, the top line first; None leaves a gap.

    >>> bar_lines([0, None, 0.5, 1], 2)
    ['   █', '▁ ██']
    """
    steps = len(bars) - 1
    # The lowest value still shows a trace, to distinguish it from a gap.
    levels = [
        0 if share is None else max(1, round(min(max(share, 0.0), 1.0) * height * steps)) for share in shares
    ]
    return [
        "".join(bars[min(max(level - row * steps, 0), steps)] for level in levels)
        for row in reversed(range(height))
    ]


def _bars_for(encoding: str) -> str:
    return BARS if encoding.lower().startswith("utf") else PLAIN_BARS
