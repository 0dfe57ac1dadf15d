"""StreamCounters: what became of every event, so that no event is lost without being counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from orienteer.errors import OrienteerError


@dataclass
class StreamCounters:
    """Events of a stream, counted; ``received == filtered + dropped + processed`` once all are decided.

    received : distinct events that came.
    filtered : of these, those that the user's filter left out by their small data.
    dropped : of these, those given up by an explicit policy, such as parts missing for too long.
    processed : of these, those that went through hit finding.

    These belong to none of the events above:

    duplicates : events that came again and were left out.
    malformed : messages that could not be understood and were skipped.
    gaps : events that were announced but never came.
    late : parts that came after their event had been decided, and were left out.

    >>> counters = StreamCounters(received=3, filtered=1, processed=1)
    >>> counters.adds_up, counters.undecided
    (False, 1)
    """

    received: int = 0
    filtered: int = 0
    dropped: int = 0
    processed: int = 0
    duplicates: int = 0
    malformed: int = 0
    gaps: int = 0
    late: int = 0

    @property
    def undecided(self) -> int:
        """Events that came but are not decided yet."""
        return self.received - self.filtered - self.dropped - self.processed

    @property
    def adds_up(self) -> bool:
        """Whether every event that came was filtered, dropped or processed."""
        return self.undecided == 0

    def __add__(self, other: StreamCounters) -> StreamCounters:
        mine, theirs = self.as_dict(), other.as_dict()
        return StreamCounters(**{name: mine[name] + theirs[name] for name in mine})

    def __sub__(self, other: StreamCounters) -> StreamCounters:
        mine, theirs = self.as_dict(), other.as_dict()
        return StreamCounters(**{name: mine[name] - theirs[name] for name in mine})

    def as_dict(self) -> dict[str, int]:
        """The numbers by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, int]) -> StreamCounters:
        """The counters from what :meth:`as_dict` returned; missing names are 0."""
        names = {field.name for field in fields(cls)}
        for name, number in numbers.items():
            if name in names and (not isinstance(number, int) or isinstance(number, bool)):
                raise OrienteerError(f"counter '{name}' is {number!r}; expected a whole number.")
        return cls(**{name: number for name, number in numbers.items() if name in names})
