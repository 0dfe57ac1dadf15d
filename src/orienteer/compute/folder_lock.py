"""Changes of files in a folder, one after another: whoever changes them holds the folder meanwhile."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from orienteer.compute.atomic import unwritable


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Inside the block no other thread or process that asks for the same folder goes on.

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
