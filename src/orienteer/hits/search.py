"""HitSearch: find the hits among all shots of a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.hits.analysis import HitAnalysis
from orienteer.hits.finding import HitFinder
from orienteer.hits.settings import HitSettings
from orienteer.source.base import Source
from orienteer.source.patterns import FRAME_MASK, Patterns
from orienteer.source.wavelength import wavelengths_in

# Number of first shots to learn from before any shot is judged.
LEARNED_FROM = 8192
# Most shots of a batch, and most bytes if frames are large.
_BATCH, _BATCH_BYTES = 512, 128 * 2**20
# Columns with more values per shot are not copied to the table: they hold a value for each pixel.
_MOST_VALUES = 16


@dataclass(frozen=True, eq=False)
class LookedShots:
    """A batch of shots after the search.

    columns : (N, ...) of all shots: event_id, the columns of the data, and the results.  Results that only
        hits have, such as size_A, are NaN or 0 in other shots.
    hits : the calibrated frames of the hits with all their columns.
    """

    columns: dict[str, NDArray[Any]]
    hits: Patterns


class HitSearch:
    """Finds the hits of a source, and judges their size and kind if detector and wavelength are known.

    It reads the first shots twice: first to learn background, hits and particle from them, then to judge them
    with all other shots.

    calibrate : converts raw frames to photons.
    wavelength_A : of all shots; 0: take it from the data.
    """

    def __init__(
        self,
        source: Source,
        settings: HitSettings,
        calibrate: Callable[[Patterns], Patterns] = lambda raw: raw,
        wavelength_A: float = 0.0,
    ) -> None:
        self._source, self._calibrate = source, calibrate
        self.finder = HitFinder(settings, source.n_pixels, source.detector, calibrate)
        self.wavelength_A = wavelength_A or wavelengths_in(source).checked().usual_A or 0.0
        detector: Detector | None = source.detector
        self.analysis: HitAnalysis | None = None
        if detector is not None and self.wavelength_A > 0:
            self.analysis = HitAnalysis(settings, detector, self.wavelength_A)

    def __iter__(self) -> Iterator[LookedShots]:
        """Every shot once, batch by batch."""
        size = min(_BATCH, max(1, _BATCH_BYTES // (4 * self._source.n_pixels)))
        for first in range(0, min(len(self._source), LEARNED_FROM), size):
            self._look(self._source.read(slice(first, min(first + size, LEARNED_FROM))))
        self.finder.begin_again()
        for raw in self._source.batches(size):
            yield self._look(raw)

    def _look(self, raw: Patterns) -> LookedShots:
        patterns = self._calibrate(raw)
        found = self.finder.look(patterns)
        is_hit = found["is_hit"]
        hits = patterns[is_hit]
        judged = {} if self.analysis is None else self.analysis.look(hits, self.finder.background)
        columns: dict[str, NDArray[Any]] = {"event_id": patterns.event_id}
        for name, column in patterns.columns.items():
            if name != FRAME_MASK and int(np.prod(column.shape[1:])) <= _MOST_VALUES:
                columns[name] = np.asarray(column)
        columns |= found | {name: _spread(column, is_hit) for name, column in judged.items()}
        of_hits = {name: column[is_hit] for name, column in found.items() if name != "is_hit"}
        return LookedShots(columns, hits.with_columns(**of_hits, **judged))


def _spread(column: NDArray[Any], is_hit: NDArray[np.bool_]) -> NDArray[Any]:
    """A column of the hits as a column of all shots, with NaN or 0 for shots that are not hits."""
    nothing = np.nan if column.dtype.kind == "f" else 0
    spread = np.full((len(is_hit), *column.shape[1:]), nothing, dtype=column.dtype)
    spread[is_hit] = column
    return spread
