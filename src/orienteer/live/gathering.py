"""Gathering: shots and hits that wait for the next segment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orienteer.live.looking import Columns
from orienteer.source.journal import join_columns
from orienteer.source.patterns import Patterns, concatenate


class Gathering:
    """Everything received since the last segment; hits are judged a few at a time while more arrive.

    n_shots, n_bytes : number of shots, and approximate memory of the shots and their hits.
    """

    def __init__(self) -> None:
        self.n_shots = self.n_bytes = 0
        self._shots: list[tuple[int, Columns]] = []
        self._rows: list[NDArray[np.int64]] = []
        self._hits: list[Patterns] = []
        self._unjudged: list[Patterns] = []
        self._judged: list[tuple[int, Columns]] = []

    def add_hits(self, hits: Patterns, rows: NDArray[np.int64]) -> None:
        """Take in hits as lists of photons; rows : their rows among the shots that are added next."""
        self._hits.append(hits)
        self._unjudged.append(hits)
        self._rows.append(rows + self.n_shots)
        photons = hits.sparse()
        self.n_bytes += photons.pixel.nbytes + photons.count.nbytes

    def add_shots(self, n: int, columns: Columns) -> None:
        """Take in shots by their columns (n, ...)."""
        self._shots.append((n, columns))
        self.n_shots += n
        self.n_bytes += sum(column.nbytes for column in columns.values())

    @property
    def n_unjudged(self) -> int:
        """Number of hits that have not been judged yet."""
        return sum(map(len, self._unjudged))

    def take_unjudged(self, most: int) -> Patterns | None:
        """The next hits to be judged, at most ``most``; None if there are none."""
        hits = _joined(self._unjudged)
        self._unjudged = [] if hits is None or len(hits) <= most else [hits[most:]]
        return None if hits is None else hits[:most]

    def add_judged(self, n: int, columns: Columns) -> None:
        """Take in what was found in the n hits that ``take_unjudged`` gave last."""
        self._judged.append((n, columns))

    @property
    def hit_rows(self) -> NDArray[np.int64]:
        """(H,) rows of the shots that are hits."""
        return np.concatenate([np.zeros(0, np.int64), *self._rows])

    def hits(self) -> Patterns | None:
        """All hits; None if there are none."""
        return _joined(self._hits)

    def judged(self) -> Columns:
        """What was found in all hits (H, ...); NaN, 0 or False for hits that lack a column."""
        return join_columns(self._judged, _names(self._judged))

    def shots(self) -> Columns:
        """The columns (N, ...) of all shots."""
        return join_columns(self._shots, _names(self._shots) or ("event_id",))


def _names(parts: list[tuple[int, Columns]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, columns in parts for name in columns))


def _joined(parts: list[Patterns]) -> Patterns | None:
    """The hits of all parts, with the columns that all parts have; None if there are no hits."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    shared = set.intersection(*(set(part.columns) for part in parts))
    return concatenate(
        [Patterns(part.frames, part.event_id, {n: part.columns[n] for n in sorted(shared)}) for part in parts]
    )
