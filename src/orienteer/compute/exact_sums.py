"""Numbers that add up to the same bits in any order: multiples of one part, which float64 holds exactly.

Ranks that divide work among them, and tiles that are claimed, add in another order every time.  If all
numbers are rounded to multiples of the same part before they are added, their sum is exact in any order.
"""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace

_BITS = 52  # one less than float64 has: half a part may be rounded up


def part_of(largest: float) -> float:
    """A power of two: whole multiples of it, up to ``largest`` in magnitude, are exact in float64.

    >>> part_of(2.0**52 - 1)
    1.0
    """
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]) - _BITS))


def in_parts(values: Array, largest: float) -> Array:
    """Values as float64, rounded such that any of their sums, up to ``largest`` in magnitude, is exact.

    All that is added to one sum needs the same ``largest``.  Sums that become larger are no longer exact, but
    as accurate as others.

    >>> a, b, c = in_parts(np.array([0.1, 0.2, 0.3]), 1.0)
    >>> float((a + b) + c - (a + (b + c))), (0.1 + 0.2) + 0.3 == 0.1 + (0.2 + 0.3)
    (0.0, False)
    """
    return round_to_parts(array_namespace(values).array(values, dtype=np.float64), largest)


def round_to_parts(values: Array, largest: float) -> Array:
    """The same in place for float64 values, without another array."""
    xp, part = array_namespace(values), part_of(largest)
    values /= part
    xp.rint(values, out=values)
    values *= part
    return values
