"""SeenIds: which events have already come, as ranges of ids, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]
MOST_RANGES = 1 << 18
_NONE = np.zeros((0, 2), dtype=np.uint64)


class SeenIds:
    """The events that have come, so that an event that comes again is recognised.

    Consecutive ids, which most streams have, take one range however many they are.  If ids are scattered, the
    oldest ranges are forgotten; at least the last ``most_ranges`` ranges are kept.

    >>> seen = SeenIds()
    >>> seen.take(np.array([4, 5, 4], np.uint64)), seen.take(np.array([5, 6], np.uint64))
    (array([ True,  True, False]), array([False,  True]))
    >>> seen.n_ranges
    1
    """

    def __init__(self, most_ranges: int = MOST_RANGES) -> None:
        self.most_ranges = most_ranges
        # (R, 2) first and last id of each range, sorted, with gaps between: the current ranges, and the full
        # set that they replaced.
        self._now = self._before = _NONE

    @property
    def n_ranges(self) -> int:
        """The number of ranges that are remembered."""
        return len(self._now) + len(self._before)

    def take(self, event_id: Ids) -> NDArray[np.bool_]:
        """(N,) bool: which have come neither in an earlier call nor earlier in this list; remembers all."""
        _, first = np.unique(event_id, return_index=True)
        is_new = np.zeros(len(event_id), dtype=bool)
        is_new[first] = True
        is_new &= ~(_holds(self._now, event_id) | _holds(self._before, event_id))
        self._now = _with(self._now, np.sort(event_id[is_new]))
        if len(self._now) > self.most_ranges:
            self._before, self._now = self._now, _NONE
        return is_new

    def state(self) -> dict[str, NDArray[Any]]:
        """The state, for :meth:`restore`."""
        return {"now": self._now, "before": self._before}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state that :meth:`state` returned."""
        self._now, self._before = (
            np.asarray(state[name], dtype=np.uint64).reshape(-1, 2) for name in ("now", "before")
        )


def _holds(ranges: Ids, event_id: Ids) -> NDArray[np.bool_]:
    if not len(ranges):
        return np.zeros(len(event_id), dtype=bool)
    at = np.searchsorted(ranges[:, 0], event_id, side="right") - 1
    return np.asarray((at >= 0) & (event_id <= ranges[np.maximum(at, 0), 1]))


def _with(ranges: Ids, new: Ids) -> Ids:
    """The ranges with these ids added, which must ascend and lie in none of them."""
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
    """Sorted ranges that do not overlap, with those that touch merged."""
    parted = ranges[1:, 0] - ranges[:-1, 1] > 1
    return np.stack([ranges[np.r_[True, parted], 0], ranges[np.r_[parted, True], 1]], axis=1)
