"""Patterns that are already in memory, as a source."""

from __future__ import annotations

from orienteer.source.base import FileSource
from orienteer.source.patterns import Patterns


class InMemorySource(FileSource):
    """A source over patterns in memory: what ``open`` gives for an array."""

    format = "array"

    def __init__(self, patterns: Patterns, frame_shape: tuple[int, ...] | None = None) -> None:
        super().__init__(None)
        self._patterns = patterns
        self.frame_shape = frame_shape or (patterns.n_pixels,)
        self.column_names = tuple(patterns.columns)
        self.is_sparse = patterns.is_sparse
        self.n_frames = len(patterns)

    def _read_range(self, first: int, last: int) -> Patterns:
        return self._patterns[first:last]
