"""Memory that is let go goes back to the system at once, so that a process of a long shift does not grow.

The C library keeps blocks that were freed for later ones, the larger the larger blocks have been.  Batches of
a stream vary in size, and what is kept between small blocks that stay is rarely used again: over an hour a
process grows, though it holds no more than in its first minute.
"""

import ctypes
from contextlib import suppress

LARGE_BYTES = 1 << 20
# The number of the setting in malloc.h of the GNU C library.
_M_MMAP_THRESHOLD = -3


def give_back_large_blocks(from_bytes: int = LARGE_BYTES) -> bool:
    """Have blocks of so many bytes and more taken from the system and given back one by one.

    Returns whether the C library of this system can be told so.
    """
    with suppress(OSError, AttributeError, TypeError):
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, from_bytes))
    return False
