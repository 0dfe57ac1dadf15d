"""Some frames of a source as a source of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.source.base import Source
from orienteer.source.finite_source import FiniteSource


class ChosenFrames(FiniteSource):
    """The frames of a source at these places (N,); they are read from it when they are asked for."""

    def __init__(self, source: Source, places: NDArray[np.int64]) -> None:
        super().__init__()
        self._source, self._places = source, places
        self.format, self.frame_shape = source.format, source.frame_shape
        self.stored_columns, self.is_sparse = source.column_names, source.is_sparse
        self.polarisation, self.metadata = source.polarisation, dict(source.metadata)
        self.n_frames = len(places)
        self.attach(source.detector)

    def _read_frames(self, rows: slice) -> Array:
        return self._source.read(self._places[rows]).frames

    def _read_event_ids(self, rows: slice) -> Array | None:
        return self._source.event_ids(self._places[rows])

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Array]:
        return dict(self._source.read_columns(names, self._places[rows]))
