"""HitKind: what the pulse of a hit met."""

from enum import IntEnum


class HitKind(IntEnum):
    """What the pulse met: values of the column ``kind`` of shots."""

    UNSURE = 0
    SINGLE = 1
    MULTIPLE = 2
    JUNK = 3
