"""Patterns that are already in memory, as a source."""

from __future__ import annotations

from collections.abc import Sequence

from orienteer.compute.arrays import Array
from orienteer.source.finite_source import FiniteSource
from orienteer.source.patterns import Patterns


class InMemorySource(FiniteSource):
    """A source over patterns in memory: what ``open`` gives for an array."""

    format = "array"

    def __init__(self, patterns: Patterns, frame_shape: tuple[int, ...] | None = None) -> None:
        super().__init__()
        self._all = patterns
        self.frame_shape = frame_shape or (patterns.n_pixels,)
        self.stored_columns = tuple(patterns.columns)
        self.is_sparse = patterns.is_sparse
        self.n_frames = len(patterns)

    def _read_frames(self, rows: slice) -> Array:
        return self._all.frames[rows]

    def _read_event_ids(self, rows: slice) -> Array | None:
        return self._all.event_id[rows] if self._all.has_event_ids else None

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Array]:
        return {name: self._all.columns[name][rows] for name in names}
