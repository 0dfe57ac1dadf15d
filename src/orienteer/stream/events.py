"""Events: a batch as it came from a stream, small data first; the large frames are read on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns

Position: TypeAlias = Mapping[str, Any]
Chosen: TypeAlias = slice | NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Events:
    """N events with their small data; no frame is read or decoded before :meth:`patterns` asks for it.

    event_id : (N,) uint64, the stable ids of the events.
    columns : small data (N, ...) such as ``pulse_energy_J``, ``wavelength_A``, ``time_s`` (of the event).
    position : plain JSON; ``source.seek(position)`` goes on right after this batch.
    read : returns the frames of the chosen events, a slice or indices (n,) into the batch.
    n_dropped : events that the source gave up between the previous batch and this one; they count as received
        and as dropped, and are not among the N.
    n_filtered : likewise, events that the user's filter has left out inside the source.
    """

    event_id: NDArray[np.uint64]
    columns: Mapping[str, NDArray[Any]]
    position: Position
    read: Callable[[Chosen], Patterns]
    n_dropped: int = 0
    n_filtered: int = 0

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if column.ndim == 0 or len(column) != len(self.event_id):
                raise OrienteerError(
                    f"column '{name}' has shape {column.shape} for {len(self.event_id)} events."
                )

    def __len__(self) -> int:
        return len(self.event_id)

    def __repr__(self) -> str:
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return f"<Events: {len(self)}{columns}>"

    def patterns(self, chosen: Chosen = slice(None)) -> Patterns:
        """The frames of these events only (a slice, indices or a mask), with ids and columns."""
        return self.read(chosen if isinstance(chosen, slice) else _rows(chosen))

    def take(self, chosen: NDArray[Any]) -> Events:
        """Only these events (a mask or indices), at the same position; no frame is read yet."""
        rows = _rows(chosen)
        return Events(
            self.event_id[rows],
            {name: column[rows] for name, column in self.columns.items()},
            self.position,
            lambda some: self.read(rows[some]),
            self.n_dropped,
            self.n_filtered,
        )


def _rows(chosen: NDArray[Any]) -> NDArray[np.int64]:
    """The indices that a mask or indices choose."""
    chosen = np.asarray(chosen)
    return np.flatnonzero(chosen) if chosen.dtype.kind == "b" else chosen.astype(np.int64)


def events_of(patterns: Patterns, position: Position, n_dropped: int = 0) -> Events:
    """Events whose frames are already in memory."""
    return Events(patterns.event_id, patterns.columns, position, patterns.__getitem__, n_dropped)
