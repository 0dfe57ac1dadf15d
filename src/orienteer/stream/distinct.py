"""RecentIds: the last event ids of a stream, one by one in the order in which they came."""

from __future__ import annotations

from collections import deque
from itertools import islice

MEMORY = 1 << 18


class RecentIds:
    """The last event ids of a stream, at least ``most`` of them.

    Each takes some hundred bytes; if the order does not matter, :class:`~orienteer.stream.seen.SeenIds`
    remembers more of them in less memory.

    >>> recent = RecentIds()
    >>> [recent.add(event_id) for event_id in (4, 5, 4)], recent.last(1)
    ([True, True, False], [5])
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
        """Remember an id; returns whether it is new."""
        if event_id in self._known:
            return False
        self._known.add(event_id)
        self._order.append(event_id)
        if len(self._order) > self.most:
            self._known.discard(self._order.popleft())
        return True

    def last(self, n: int) -> list[int]:
        """The last ``n`` ids, or fewer if there are not so many."""
        return list(islice(reversed(self._order), n))[::-1]
