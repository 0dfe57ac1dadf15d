"""A lock on a folder, so that only one process or thread at a time changes its files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from orienteer.compute.atomic import unwritable


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Inside the block, other threads and processes that ask for the same folder wait.

    The lock is on the folder itself, leaves nothing behind, and ends with the process that holds it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
