"""The hits that a growing reconstruction has taken in: all of them, or a fair sample of those that fit.

If there are more hits than fit, those whose event ids have the smallest hashes are kept.  So the sample is
fair to early and late hits, and does not depend on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.online.arrivals import OtherHits
from orienteer.reconstruction.frames.frame_store import bytes_of
from orienteer.reconstruction.model.halves import hash_of_events
from orienteer.source.base import Source
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import FRAME_MASK, Patterns, concatenate
from orienteer.source.wavelength import WAVELENGTH

# The capacity may be exceeded by this share before hits are dropped, so that this is not done for every hit.
SLACK = 0.125
_READ_AT_ONCE = 4096
# Most hits in a block; while hits are dropped, one block at a time is in memory twice.
_LARGEST_BLOCK = 1 << 15
_SALT = 2


class Reservoir:
    """N hits, each with a row of what is known of it.

    place : (N,) int64, place of each hit in the source; event_id : (N,) uint64.
    visited : (N,) int64, round in which each hit was last looked at; -1: never.
    columns : (N, ...) by name, what rounds have found out; empty before the first round.
    capacity : how many hits are kept; 0: not yet decided.
    """

    def __init__(self, source: Source, needed: tuple[str, ...] = ()) -> None:
        self._source = source
        self._needed = {WAVELENGTH, FRAME_MASK, *needed}
        self._blocks: list[Patterns] = []
        self.place, self.visited = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.event_id = np.zeros(0, np.uint64)
        self.columns: dict[str, NDArray[Any]] = {}
        self.capacity = 0

    def __len__(self) -> int:
        return len(self.place)

    @property
    def nbytes(self) -> int:
        """Memory of the frames, in bytes."""
        return sum(bytes_of(block) for block in self._blocks)

    @property
    def n_unseen(self) -> int:
        """Hits that no round has looked at yet."""
        return int((self.visited < 0).sum())

    def add(self, place: NDArray[np.int64], patterns: Patterns) -> None:
        """Take in new hits, even beyond the capacity, so that a round looks at each at least once."""
        self._blocks.append(self._slim(patterns))
        self._join_small()
        self.place = np.concatenate([self.place, place])
        self.event_id = np.concatenate([self.event_id, np.asarray(patterns.event_id)])
        self.visited = np.concatenate([self.visited, np.full(len(place), -1)])
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, _blank(name, column, len(place))])

    def trim(self) -> None:
        """Drop hits if the capacity is exceeded by more than the slack."""
        if self.capacity and len(self) > (1 + SLACK) * self.capacity:
            priority = hash_of_events(self.event_id, _SALT)
            self._keep(np.sort(np.argpartition(priority, self.capacity)[: self.capacity]))

    def leave_out(self, place: NDArray[np.int64]) -> None:
        """Drop the hits of these rows of the source, as far as they are kept."""
        is_out = np.isin(self.place, place)
        if is_out.any():
            self._keep(np.flatnonzero(~is_out))

    def patterns(self, rows: NDArray[np.int64]) -> Patterns:
        """The frames of these rows (n,), in their order."""
        starts = np.cumsum([0, *map(len, self._blocks)])
        order = np.argsort(rows, kind="stable")
        bounds = np.searchsorted(rows[order], starts)
        parts = [
            block[rows[order[low:high]] - start]
            for block, start, low, high in zip(
                self._blocks, starts[:-1], bounds[:-1], bounds[1:], strict=True
            )
            if high > low
        ]
        found = concatenate(parts)
        if (np.diff(rows) > 0).all():  # already in order
            return found
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return found[back]

    def source(self, rows: NDArray[np.int64]) -> InMemorySource:
        """A source of only the hits of these rows (n,)."""
        source = InMemorySource(self.patterns(rows), self._source.frame_shape)
        source.polarisation = self._source.polarisation
        assert self._source.detector is not None
        return source.with_detector(self._source.detector)

    def take(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The values (n, ...) of a column for these rows."""
        return self.columns[name][rows]

    def note(self, rows: NDArray[np.int64], columns: Mapping[str, NDArray[Any]], round_: int) -> None:
        """Store what a round has found out about its hits."""
        for name, values in columns.items():
            if name not in self.columns or self.columns[name].shape[1:] != values.shape[1:]:
                self.columns[name] = _blank(name, values, len(self))
            self.columns[name][rows] = values
        self.visited[rows] = round_

    def forget_frames(self) -> None:
        """Free the memory of the frames; what is known of them stays."""
        self._blocks = []

    def state(self) -> dict[str, Any]:
        """Everything needed to continue, except the frames, which the source has."""
        return {
            "reservoir/place": self.place.copy(),
            "reservoir/event_id": self.event_id.copy(),
            "reservoir/visited": self.visited.copy(),
            "reservoir/capacity": self.capacity,
            **{f"reservoir/columns/{name}": column.copy() for name, column in self.columns.items()},
        }

    def restore(self, state: Mapping[str, Any], *, with_frames: bool = True) -> None:
        """Continue from a state; the frames are read again."""
        self.place = np.array(state["reservoir/place"], np.int64)
        self.event_id = np.array(state["reservoir/event_id"], np.uint64)
        self.visited = np.array(state["reservoir/visited"], np.int64)
        self.capacity = int(state["reservoir/capacity"])
        start = "reservoir/columns/"
        self.columns = {k.removeprefix(start): np.array(v) for k, v in state.items() if k.startswith(start)}
        self._blocks = []
        for first in range(0, len(self) if with_frames else 0, _READ_AT_ONCE):
            rows = slice(first, first + _READ_AT_ONCE)
            patterns = self._source.read(self.place[rows])
            if not np.array_equal(patterns.event_id, self.event_id[rows]):
                raise OtherHits(
                    "the hits are not those with which this map was begun.",
                    "Give the data that it was begun with, or another folder for a new map.",
                )
            self._blocks.append(self._slim(patterns))
        self._join_small()

    def _slim(self, patterns: Patterns) -> Patterns:
        """The patterns with only the columns that are needed, and with counted photons as lists."""
        columns = {name: column for name, column in patterns.columns.items() if name in self._needed}
        frames: Any = patterns.frames
        if not patterns.is_sparse and frames.dtype.kind in "iu":
            frames = patterns.sparse()
        return Patterns(frames, patterns.event_id, columns)

    def _join_small(self) -> None:
        """Join the last blocks while they are of similar size: few blocks, and few copies of each hit."""
        while len(self._blocks) > 1 and _are_like(*self._blocks[-2:]):
            self._blocks[-2:] = [concatenate(self._blocks[-2:])]

    def _keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all hits except those of these rows (n,), in rising order, block by block."""
        blocks, self._blocks, first = self._blocks, [], 0
        while blocks:
            block = blocks.pop(0)
            low, high = np.searchsorted(rows, (first, first + len(block)))
            first += len(block)
            if high > low:
                self._blocks.append(block[rows[low:high] - (first - len(block))])
                del block
                self._join_small()
        self.place, self.event_id, self.visited = self.place[rows], self.event_id[rows], self.visited[rows]
        self.columns = {name: column[rows] for name, column in self.columns.items()}


def _are_like(before: Patterns, last: Patterns) -> bool:
    """Whether two neighbouring blocks should be joined."""
    return len(before) <= 2 * len(last) and len(before) + len(last) <= _LARGEST_BLOCK


def _blank(name: str, like: NDArray[Any], n: int) -> NDArray[Any]:
    """Rows of a column for hits of which nothing is known yet."""
    rows = np.zeros((n, *like.shape[1:]), dtype=like.dtype)
    if name == "quaternion":
        rows[:, 0] = 1
    elif name in ("weight", "fluence", "perplexity", "state_probability"):
        rows[:] = 1
    return rows
