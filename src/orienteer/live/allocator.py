"""Memory that was let go goes back to the system, so that a process of a long shift does not grow.

The C library keeps blocks that were freed for later ones.  Batches of a stream vary in size, and what is free
between small blocks that stay is rarely used again: a process grows, though it holds no more than before.
"""

import ctypes
from contextlib import suppress

LARGE_BYTES = 1 << 20
# The number of the setting in malloc.h of the GNU C library.
_M_MMAP_THRESHOLD = -3


def take_large_blocks_one_by_one(from_bytes: int = LARGE_BYTES) -> bool:
    """Have blocks of so many bytes and more come from the system and go back there each by itself.

    Otherwise threads that receive messages keep room for the largest that has come.  Returns whether the C
    library of this system can be told so.
    """
    with suppress(OSError, AttributeError, TypeError):
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, from_bytes))
    return False


def give_back_freed_memory() -> bool:
    """Give all pages back that hold nothing; whether the C library of this system can be told so.

    The GNU C library does it in some milliseconds for a hundred MiB.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
        return True
    return False
