"""Parts: one detector's part of some events, which may lie in several of its batches and in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.source.patterns import Patterns, concatenate
from orienteer.stream.events import Events


@dataclass(frozen=True)
class Parts:
    """N events, the n-th of which is row ``row[n]`` of ``batches[batch[n]]``."""

    batches: Sequence[Events]
    batch: NDArray[np.int64]
    row: NDArray[np.int64]

    @classmethod
    def of(cls, places: Sequence[tuple[Events, int]]) -> Parts:
        """The parts at these places, each a batch and a row in it."""
        batches = list({id(events): events for events, _ in places}.values())
        number = {id(events): k for k, events in enumerate(batches)}
        batch = np.array([number[id(events)] for events, _ in places], np.int64)
        return cls(batches, batch, np.array([row for _, row in places], np.int64))

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that all batches have: (N, ...) by name."""
        names = [name for name in self.batches[0].columns if all(name in b.columns for b in self.batches)]
        order = self._order()
        return {
            name: np.concatenate([b.columns[name][rows] for b, rows in self._by_batch(order)])[_back(order)]
            for name in names
        }

    def patterns(self, chosen: NDArray[np.int64]) -> Patterns:
        """The frames of the chosen events, in this order."""
        some = Parts(self.batches, self.batch[chosen], self.row[chosen])
        if not len(chosen):
            return self.batches[0].patterns(chosen)
        order = some._order()
        return concatenate([b.patterns(rows) for b, rows in some._by_batch(order)])[_back(order)]

    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.batch, kind="stable")

    def _by_batch(self, order: NDArray[np.int64]) -> list[tuple[Events, NDArray[np.int64]]]:
        batch, row = self.batch[order], self.row[order]
        return [(self.batches[k], row[batch == k]) for k in np.unique(batch).tolist()]


def _back(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The permutation that undoes this one."""
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return back


def side_by_side(parts: Sequence[Patterns]) -> Patterns:
    """Frames of several detectors joined into one: (N, P1 + P2 + ...), dense."""
    if len(parts) == 1:
        return parts[0]
    return Patterns(np.concatenate([part.dense() for part in parts], axis=1), parts[0].event_id)
