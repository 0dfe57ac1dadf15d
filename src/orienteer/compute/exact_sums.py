"""Numbers that add up to the same bits in any order: whole multiples of a part that float64 can hold.

Ranks that share out work, and tiles that come as they are claimed, add in another order every time.  What is
rounded before it is added, to parts of one size, loses nothing on the way: the sum is exact.
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

    Who adds to the same sum gives the same ``largest``.  Sums that become larger are no longer exact, and as
    good as others.

    >>> a, b, c = in_parts(np.array([0.1, 0.2, 0.3]), 1.0)
    >>> float((a + b) + c - (a + (b + c))), (0.1 + 0.2) + 0.3 == 0.1 + (0.2 + 0.3)
    (0.0, False)
    """
    return round_to_parts(array_namespace(values).array(values, dtype=np.float64), largest)


def round_to_parts(values: Array, largest: float) -> Array:
    """The same in place, of float64 values that nobody needs as they are: no other array is made."""
    xp, part = array_namespace(values), part_of(largest)
    values /= part
    xp.rint(values, out=values)
    values *= part
    return values
