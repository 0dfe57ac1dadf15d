"""HitKind: what a hit is of."""

from enum import IntEnum


class HitKind(IntEnum):
    """What a hit is of, as the column ``kind`` of shots holds it."""

    UNSURE = 0
    SINGLE = 1
    MULTIPLE = 2
    JUNK = 3
