"""A record of reading: which rank read which tile, from which holder, in which step and when."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Visit:
    """One tile that was read.

    reader, holder : ranks.  step : number of the share that the reader reads, counted from 0.
    start, end : seconds of the machine's clock.  is_copied : copied through a window, not read in place.
    """

    reader: int
    step: int
    holder: int
    tile: int
    start: float
    end: float
    is_copied: bool


@dataclass(eq=False)
class Trace:
    """Visits of one rank, in the order in which they ended."""

    visits: list[Visit] = field(default_factory=list)


def shared_windows(visits: Iterable[Visit]) -> list[tuple[int, int, list[int]]]:
    """Steps in which a window had several readers: (step, holder, readers).

    visits : of all ranks, in one pass.

    >>> shared_windows([Visit(0, 1, 2, 7, 0.0, 1.0, True), Visit(1, 1, 2, 8, 5.0, 6.0, True)])
    [(1, 2, [0, 1])]
    """
    readers: dict[tuple[int, int], set[int]] = defaultdict(set)
    for visit in visits:
        readers[visit.step, visit.holder].add(visit.reader)
    return [(step, holder, sorted(own)) for (step, holder), own in sorted(readers.items()) if len(own) > 1]


def share_of_waiting_in_common(visits: Iterable[Visit]) -> float:
    """The share of the time for copies through windows in which another rank copied from the same window.

    It is measured by the clock: ranks drift apart, so copies of different steps may overlap.
    """
    copied: dict[int, list[Visit]] = defaultdict(list)
    for visit in visits:
        if visit.is_copied:
            copied[visit.holder].append(visit)
    total = common = 0.0
    for own in copied.values():
        for visit in own:
            total += visit.end - visit.start
            others = [
                (max(o.start, visit.start), min(o.end, visit.end)) for o in own if o.reader != visit.reader
            ]
            last = visit.start
            for start, end in sorted(pair for pair in others if pair[0] < pair[1]):
                common += max(0.0, end - max(start, last))
                last = max(last, end)
    return common / total if total else 0.0
