"""What a live run shows while it works: a picture on a terminal, a line every few seconds elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orienteer.cli.console import messages
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError

if TYPE_CHECKING:
    from orienteer.live.folder import LiveFolder
    from orienteer.live.supervising import Child, Supervisor

Show = Callable[["LiveFolder", "Supervisor"], None]
_EVERY_S, _PLAIN_EVERY_S = 0.5, 5.0
_BARS = " ▁▂▃▄▅▆▇█"


@contextmanager
def show_live(title: str, is_quiet: bool = False) -> Iterator[Show]:
    """Give the block a function that shows where a live run stands; it can be called often."""
    if is_quiet:
        yield lambda folder, supervisor: None
    elif messages.is_terminal:
        with Live(console=messages, refresh_per_second=4, transient=False) as display:
            yield _Now(_EVERY_S, lambda told: display.update(picture(title, *told)))
    else:
        messages.print(title, markup=False, soft_wrap=True)
        yield _Now(_PLAIN_EVERY_S, _Line())


class _Now:
    """Reads the folder at most every ``every_s`` seconds, or when a process changes state, and shows it."""

    def __init__(self, every_s: float, show: Callable[[tuple[dict[str, Any], dict[str, str]]], None]) -> None:
        self._every_s, self._show = every_s, show
        self._shown_s = -float("inf")
        self._states: dict[str, str] = {}

    def __call__(self, folder: "LiveFolder", supervisor: "Supervisor") -> None:
        from orienteer.live.summary import live_summary

        states: dict[str, str] = {child.role: child.state for child in supervisor.children}
        if time.monotonic() - self._shown_s < self._every_s and states == self._states:
            return
        self._shown_s, self._states = time.monotonic(), states
        try:
            summary = live_summary(folder.path, with_powder=False)
        except OrienteerError:  # a file is being replaced: try again at the next look
            return
        words = {
            child.role: _words_of(child, is_worker=child is supervisor.children[0])
            for child in supervisor.children
        }
        self._show((summary, words))


def _words_of(child: "Child", is_worker: bool) -> str:
    """The last message of a process; why a worker gave up is left out: the run's final error says it."""
    if child.state == "working":
        return child.words
    return child.state if is_worker and child.state == "given up" else f"{child.state}: {child.words}"


class _Line:
    """Prints a line of counters, and a line for each process with a new message."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._line = ""

    def __call__(self, told: tuple[dict[str, Any], dict[str, str]]) -> None:
        summary, words = told
        for role, said in words.items():
            if said and self._said.get(role) != said:
                messages.print(f"{role}: {said}", markup=False, soft_wrap=True)
        self._said = words
        line = in_one_line(summary)
        if line != self._line:
            messages.print(line, markup=False, soft_wrap=True)
        self._line = line


def in_one_line(summary: dict[str, Any]) -> str:
    """Counters and rates in one line."""
    counters, now = summary["counters"], summary["now"]
    parts = [f"{counters[name]:,} {name}" for name in ("received", "filtered", "dropped", "processed")]
    beside = [
        f"{counters[name]:,} {name}" for name in ("duplicates", "malformed", "gaps", "late") if counters[name]
    ]
    rates = f"{now['frames_per_s']:,.0f} frames/s, {now['hits_per_s']:,.1f} hits/s"
    return ", ".join([*parts, *beside]) + f"; {counted(summary['hits'], 'hit')}; {rates}"


def picture(title: str, summary: dict[str, Any], words: dict[str, str]) -> Group:
    """Counters, rates, hits by minute, sizes, and the last message of each process."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    counters, now = summary["counters"], summary["now"]
    n_processed = max(1, counters["processed"])
    table.add_row("events", Text(in_one_line(summary).partition(";")[0]))
    table.add_row("hits", f"{summary['hits']:,} ({summary['hits'] / n_processed:.2%} of shots)")
    if summary["kinds"]:
        table.add_row("kinds", ", ".join(f"{n:,} {kind}" for kind, n in sorted(summary["kinds"].items())))
    rates = f"{now['frames_per_s']:,.0f} frames/s, {now['hits_per_s']:,.1f} hits/s"
    table.add_row("now", f"{rates}, in the journal after {now['latency_s']:.1f} s")
    rate = summary["hit_rate"]
    shares = [hits / max(1, shots) for hits, shots in zip(rate["hits"], rate["shots"], strict=True)]
    table.add_row("hit rate", Text(bars(shares[-48:])))
    table.add_row("sizes", Text(_sizes(summary["size_A"])))
    for role, said in words.items():
        table.add_row(role, Text(said))
    return Group(Text(title, style="bold"), table)


def bars(values: list[float]) -> str:
    """Numbers as a row of bars; the largest is a full bar.

    >>> bars([0, 1, 2])
    ' ▄█'
    """
    most = max(values, default=0) or 1
    return "".join(_BARS[round(value / most * (len(_BARS) - 1))] for value in values)


def _sizes(sizes: dict[str, Any]) -> str:
    counts, edges = sizes["counts"], sizes["edges"]
    lit = [k for k, n in enumerate(counts) if n]
    if not lit:
        return ""
    first, last = lit[0], lit[-1] + 1
    return f"{edges[first]:.0f} A {bars(counts[first:last])} {edges[last]:.0f} A"
