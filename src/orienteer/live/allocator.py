"""Return freed memory to the system, so that a process does not grow over a long shift.

The C library keeps freed blocks for later use.  Batches of a stream vary in size, and the gaps between small
blocks that stay are rarely used again: the process grows although it holds no more than before.
"""

import ctypes
from contextlib import suppress

LARGE_BYTES = 1 << 20
# The number of the setting in malloc.h of the GNU C library.
_M_MMAP_THRESHOLD = -3


def take_large_blocks_one_by_one(from_bytes: int = LARGE_BYTES) -> bool:
    """Make the C library take each block of ``from_bytes`` or more from the system, and return it when freed.

    Otherwise threads that receive messages keep room for the largest message so far.  Returns whether the C
    library of this system has this setting.
    """
    with suppress(OSError, AttributeError, TypeError):
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, from_bytes))
    return False


def give_back_freed_memory() -> bool:
    """Return all empty pages to the system; returns whether the C library of this system can do that.

    The GNU C library needs a few milliseconds for a hundred MiB.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
        return True
    return False
