"""Hits as they arrive in a growing source: each selected hit is taken once, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns

# Columns (n, ...) by name in, ``event_id`` among them; (n,) bool out: which hits are taken.
Select: TypeAlias = Callable[[dict[str, NDArray[Any]]], NDArray[np.bool_]]


class OtherHits(OrienteerError):  # noqa: N818 - named after the data
    """The data are not those with which a map was begun."""


class Arrivals:
    """Keeps track of which hits of a source were taken, left out, or still wait.

    n_seen : rows of the source looked at so far; n_doubles : how many of them repeat an event.
    chosen : (T,) int64, rows of all hits that were taken; left_out : (L,) rows of hits that would have been
        taken if the user had not excluded them.
    """

    def __init__(self, source: Source, select: Select | None = None) -> None:
        self._source, self._select = source, select
        self.n_seen = self.n_doubles = 0
        self.chosen, self.left_out = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._excluded = np.zeros(0, np.uint64)
        # Events of all hits that were taken or left out, in rising order.
        self._known = np.zeros(0, np.uint64)

    @property
    def n_waiting(self) -> int:
        """Number of rows that wait, as of the last look at the source."""
        return int(self._source.n_frames or 0) - self.n_seen

    def look(self) -> int:
        """Look for new rows; returns how many wait."""
        self._source.refresh()
        return self.n_waiting

    def exclude(self, event_ids: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Exclude exactly these events, among hits already taken and those to come.

        Returns the rows that are no longer chosen, and those that are chosen again.
        """
        self._excluded = np.unique(event_ids)
        is_out, is_still_out = (self._is_excluded(rows) for rows in (self.chosen, self.left_out))
        gone, back = self.chosen[is_out], self.left_out[~is_still_out]
        self.chosen = np.sort(np.concatenate([self.chosen[~is_out], back]))
        self.left_out = np.concatenate([self.left_out[is_still_out], gone])
        return gone, back

    def _is_excluded(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not len(rows) or not len(self._excluded):
            return np.zeros(len(rows), dtype=bool)
        return np.isin(self._source.event_ids(rows), self._excluded)

    def take(self, most: int) -> tuple[NDArray[np.int64], Patterns | None]:
        """Take at most ``most`` of the next hits; returns their rows in the source, and the hits."""
        rows = np.arange(self.n_seen, self.n_seen + min(most, self.n_waiting))
        if not len(rows):
            return rows, None
        span = slice(int(rows[0]), int(rows[-1]) + 1)
        keep, ids = np.ones(len(rows), dtype=bool), self._source.event_ids(span)
        if self._select is not None:
            columns = {**self._source.read_columns(frames=span), "event_id": ids}
            keep = np.array(self._select(columns))
            if keep.shape != rows.shape or keep.dtype.kind != "b":
                raise OrienteerError(
                    f"the selection of {counted(len(rows), 'hit')} gave {keep.dtype} of shape {keep.shape}.",
                    "It should give one True or False for each hit.",
                )
        is_new = keep & self._note_new(ids, keep)
        self.n_doubles += int((keep & ~is_new).sum())
        keep = is_new
        self.n_seen += len(rows)
        is_out = keep & np.isin(ids, self._excluded)
        self.left_out = np.concatenate([self.left_out, rows[is_out]])
        rows = rows[keep & ~is_out]
        self.chosen = np.concatenate([self.chosen, rows])
        return rows, self._source.read(rows) if len(rows) else None

    def _note_new(self, ids: NDArray[np.uint64], keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(n,) whether each event is kept and met for the first time; those are known from now on."""
        chosen = np.flatnonzero(keep)
        events, first = np.unique(np.asarray(ids, np.uint64)[chosen], return_index=True)
        place = np.searchsorted(self._known, events)
        is_known = np.append(self._known, np.uint64(0))[place] == events
        is_known &= place < len(self._known)
        self._known = np.insert(self._known, place[~is_known], events[~is_known])
        is_new = np.zeros(len(ids), dtype=bool)
        is_new[chosen[first[~is_known]]] = True
        return is_new

    def state(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {
            "arrivals/n_seen": self.n_seen,
            "arrivals/n_doubles": self.n_doubles,
            "arrivals/chosen": self.chosen,
            "arrivals/left_out": self.left_out,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; the source must still have the hits that were taken."""
        self.n_seen, self.n_doubles = int(state["arrivals/n_seen"]), int(state["arrivals/n_doubles"])
        self.chosen = np.array(state["arrivals/chosen"], np.int64)
        # States of versions without exclusions have no such entry.
        self.left_out = np.array(state.get("arrivals/left_out", ()), np.int64)
        if self.look() < 0:
            raise OtherHits(
                f"the data have {self._source.n_frames} hits, and {self.n_seen} were seen before.",
                "Give the data that this map was begun with, or another folder for a new map.",
            )
        taken = np.concatenate([self.chosen, self.left_out])
        self._known = np.unique(np.asarray(self._source.event_ids(taken), np.uint64))
