"""Memory that was let go goes back to the system, so that a process of a long shift does not grow.

The C library keeps blocks that were freed for later ones.  Batches of a stream vary in size, and what is free
between small blocks that stay is rarely used again: a process grows, though it holds no more than before.
"""

import ctypes
from contextlib import suppress


def give_back_freed_memory() -> bool:
    """Give all pages back that hold nothing; whether the C library of this system can be told so.

    The GNU C library does it in some milliseconds for a hundred MiB.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
        return True
    return False
