"""Weather: what every rank of a run did at each time, and how fast compared with the others.

A computational weather plot shows the rate of every rank over time.  In it, slow nodes are brown rows, stalls
of the file system are red stripes, and frames that cost too much are spots that return in every iteration.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orienteer.scaling.stage_lines import RankLines, StageLine, read_stage_lines

# In the order in which they are drawn: first work, then the stages that interrupt it.
STAGES = (
    "orient", "temperature", "solve", "phase", "nuisances", "sentinels", "refine", "other",
    "read", "wait", "save",
)  # fmt: skip
NOTHING = -1


@dataclass(frozen=True, eq=False)
class Weather:
    """Stages of R ranks."""

    ranks: tuple[RankLines, ...]

    @classmethod
    def read(cls, run: Path) -> "Weather":
        """The weather of a run, from the logs in its directory; the run may still be going on."""
        return cls(tuple(read_stage_lines(run)))

    @cached_property
    def start(self) -> float:
        """When the first stage began, s since 1970."""
        return min((rank.lines[0].start for rank in self.ranks if rank.lines), default=0.0)

    @cached_property
    def seconds(self) -> float:
        """Seconds from the first stage to the end of the last."""
        ends = [line.end for rank in self.ranks for line in rank.lines]
        return max(ends, default=self.start) - self.start

    @cached_property
    def iterations(self) -> dict[int, float]:
        """When each iteration began, s since :attr:`start`; if it was done again, the last time."""
        began: dict[int, float] = {}
        for rank in self.ranks:
            seen: dict[int, float] = {}
            before = None
            for line in rank.lines:
                if line.iteration != before:
                    seen[line.iteration] = line.start - self.start
                before = line.iteration
            for number, time in seen.items():
                began[number] = min(began.get(number, np.inf), time)
        return began

    @cached_property
    def batches(self) -> list[tuple[int, StageLine]]:
        """Index of the rank, and line, of every batch of frames that was oriented."""
        return [
            (row, line)
            for row, rank in enumerate(self.ranks)
            for line in rank.lines
            if line.stage == "orient" and line.frames
        ]

    @cached_property
    def rates(self) -> dict[int, NDArray[np.float64]]:
        """For every iteration, frames per second (R,) of each rank while it oriented; NaN if it did not.

        The rate is the median over batches, so that one costly batch does not make a rank slow.  If ranks
        share the orientations of the same frames, frames count times the pieces of work that a rank claimed.
        """
        each: dict[tuple[int, int], list[float]] = defaultdict(list)
        for row, line in self.batches:
            each[line.iteration, row].append(line.amount / max(line.own_seconds, 1e-9))
        found = {number: np.full(len(self.ranks), np.nan) for number in sorted({key[0] for key in each})}
        for (number, row), rates in each.items():
            found[number][row] = np.median(rates)
        return found

    @cached_property
    def usual_rate(self) -> dict[int, float]:
        """Median frames per second of a rank, by iteration; it falls as the grid of poses becomes finer."""
        return {number: float(np.nanmedian(rate)) for number, rate in self.rates.items()}

    @cached_property
    def relative_rate(self) -> NDArray[np.float64]:
        """(R,) rate of each rank relative to all ranks, the median over iterations; NaN: it did nothing."""
        if not self.rates:
            return np.full(len(self.ranks), np.nan)
        # With two ranks, a median would hide the slow one: compare with the faster one.
        pick = np.nanmax if len(self.ranks) == 2 else np.nanmedian
        each = np.array([rate / pick(rate) for rate in self.rates.values() if np.isfinite(rate).any()])
        with np.errstate(invalid="ignore"):
            known = np.isfinite(each).any(axis=0)
        return np.array([
            np.nanmedian(column) if is_known else np.nan
            for column, is_known in zip(each.T, known, strict=True)
        ])  # fmt: skip

    @cached_property
    def shares(self) -> dict[str, NDArray[np.float64]]:
        """For every stage, its share (R,) of the time in which each rank existed."""
        sums = {name: np.zeros(len(self.ranks)) for name in STAGES}
        for row, rank in enumerate(self.ranks):
            if not rank.lines:
                continue
            whole = max(rank.seconds, 1e-9)
            for line in rank.lines:
                sums[line.stage if line.stage in sums else "other"][row] += line.own_seconds / whole
            told = sum(sums[name][row] for name in STAGES)
            sums["other"][row] += max(0.0, 1.0 - told)
        return sums

    def cells(self, n: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """What each rank did in n equal spans of time, (R, n), and how fast it oriented, (R, n).

        The first holds the number of the stage in ``STAGES`` that took most of the cell, or ``NOTHING``.  The
        second is the rate over :attr:`usual_rate` of the iteration, NaN where nothing was oriented.
        """
        width = max(self.seconds, 1e-9) / n
        what = np.full((len(self.ranks), n), NOTHING, dtype=np.int8)
        rate = np.full((len(self.ranks), n), np.nan, dtype=np.float32)
        for row, rank in enumerate(self.ranks):
            spent = np.zeros((len(STAGES), n))
            frames, usual = np.zeros(n), np.zeros(n)
            outer: list[int] = []
            for line in rank.lines:
                number = STAGES.index(line.stage) if line.stage in STAGES else STAGES.index("other")
                first, last = (line.start - self.start) / width, (line.end - self.start) / width
                at = slice(max(0, int(first)), min(n, int(np.ceil(last))))
                covered = _covered(first, last, at)
                spent[number, at] += covered
                outer = outer[: line.depth]
                if outer:  # the enclosing stage did not use this time itself
                    spent[outer[-1], at] -= covered
                outer.append(number)
                if line.stage == "orient" and line.frames and line.iteration in self.usual_rate:
                    frames[at] += covered * line.amount / max(line.own_seconds, 1e-9)
                    usual[at] += covered * self.usual_rate[line.iteration]
            busy = spent.sum(axis=0) > 0.05
            what[row, busy] = spent.argmax(axis=0)[busy]
            oriented = busy & (what[row] == STAGES.index("orient")) & (usual > 0)
            rate[row, oriented] = (frames / np.maximum(usual, 1e-12))[oriented]
        return what, rate

    def frames_per_second(self, n: int) -> NDArray[np.float64]:
        """(n,) frames that all ranks together oriented per second, in n equal spans of time."""
        width = max(self.seconds, 1e-9) / n
        done = np.zeros(n)
        shared = Counter((line.iteration, line.first, line.frames) for _, line in self.batches if line.items)
        for _, line in self.batches:
            sharing = max(1, shared[line.iteration, line.first, line.frames])
            first, last = (line.start - self.start) / width, (line.end - self.start) / width
            at = slice(max(0, int(first)), min(n, int(np.ceil(last))))
            covered = _covered(first, last, at)
            if covered.sum() > 0:
                done[at] += line.frames / sharing * covered / covered.sum()
        return done / width


def _covered(first: float, last: float, at: slice) -> NDArray[np.float64]:
    """Share of each cell ``at`` that lies between first and last, in cells."""
    cells = np.arange(at.start, at.stop)
    return np.asarray(np.clip(np.minimum(last, cells + 1) - np.maximum(first, cells), 0.0, 1.0))
