"""SeenIds: which events have come already, as ranges of ids, in a memory that does not grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]
MOST_RANGES = 1 << 18
_NONE = np.zeros((0, 2), dtype=np.uint64)


class SeenIds:
    """The events that have come, so that one that comes again is known.

    Ids that follow each other, as those of most streams do, take one range for any number of them.  Where
    they are scattered the oldest are forgotten: at least the last ``most_ranges`` ranges are known.

    >>> seen = SeenIds()
    >>> seen.take(np.array([4, 5, 4], np.uint64)), seen.take(np.array([5, 6], np.uint64))
    (array([ True,  True, False]), array([False,  True]))
    >>> seen.n_ranges
    1
    """

    def __init__(self, most_ranges: int = MOST_RANGES) -> None:
        self.most_ranges = most_ranges
        # (R, 2) first and last id, in order and apart: of now, and of the time before the last forgetting.
        self._now = self._before = _NONE

    @property
    def n_ranges(self) -> int:
        """Ranges that are remembered."""
        return len(self._now) + len(self._before)

    def take(self, event_id: Ids) -> NDArray[np.bool_]:
        """(N,) bool: which have not come before, neither earlier nor in front in this list; all are noted."""
        _, first = np.unique(event_id, return_index=True)
        is_new = np.zeros(len(event_id), dtype=bool)
        is_new[first] = True
        is_new &= ~(_holds(self._now, event_id) | _holds(self._before, event_id))
        self._now = _with(self._now, np.sort(event_id[is_new]))
        if len(self._now) > self.most_ranges:
            self._before, self._now = self._now, _NONE
        return is_new

    def state(self) -> dict[str, NDArray[Any]]:
        """What :meth:`restore` takes."""
        return {"now": self._now, "before": self._before}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Know what was known."""
        self._now, self._before = (
            np.asarray(state[name], dtype=np.uint64).reshape(-1, 2) for name in ("now", "before")
        )


def _holds(ranges: Ids, event_id: Ids) -> NDArray[np.bool_]:
    if not len(ranges):
        return np.zeros(len(event_id), dtype=bool)
    at = np.searchsorted(ranges[:, 0], event_id, side="right") - 1
    return np.asarray((at >= 0) & (event_id <= ranges[np.maximum(at, 0), 1]))


def _with(ranges: Ids, new: Ids) -> Ids:
    """The ranges and these ids, which ascend and lie in none of them."""
    if not len(new):
        return ranges
    if not len(ranges) or new[0] > ranges[-1, 1]:  # the usual case: they come in order
        edge = max(0, len(ranges) - 1)
        return np.concatenate(
            [ranges[:edge], _merged(np.concatenate([ranges[edge:], np.stack([new, new], 1)]))]
        )
    both = np.concatenate([ranges, np.stack([new, new], 1)])
    return _merged(both[np.argsort(both[:, 0])])


def _merged(ranges: Ids) -> Ids:
    """Ranges in order and apart, with neighbours that touch made one."""
    parted = ranges[1:, 0] - ranges[:-1, 1] > 1
    return np.stack([ranges[np.r_[True, parted], 0], ranges[np.r_[parted, True], 1]], axis=1)
