"""RecentIds: which events have come already, remembered for a bounded number of them."""

from __future__ import annotations

from collections import deque
from itertools import islice

import numpy as np
from numpy.typing import NDArray

MEMORY = 1 << 18


class RecentIds:
    """The last event ids of a stream, at least ``most`` of them.

    >>> recent = RecentIds()
    >>> recent.is_new(np.array([4, 5, 4], np.uint64)), recent.is_new(np.array([5, 6], np.uint64))
    (array([ True,  True, False]), array([False,  True]))
    """

    def __init__(self, most: int = MEMORY) -> None:
        self.most = most
        self._order: deque[int] = deque()
        self._known: set[int] = set()

    def __contains__(self, event_id: int) -> bool:
        return event_id in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, event_id: int) -> bool:
        """Remember an id; whether it is new."""
        if event_id in self._known:
            return False
        self._known.add(event_id)
        self._order.append(event_id)
        if len(self._order) > self.most:
            self._known.discard(self._order.popleft())
        return True

    def last(self, n: int) -> list[int]:
        """The ids that came last, at most so many."""
        return list(islice(reversed(self._order), n))[::-1]

    def is_new(self, event_id: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """(N,) bool: ids that have not come before, neither earlier nor in front of them in this list."""
        return np.fromiter((self.add(one) for one in event_id.tolist()), bool, len(event_id))
