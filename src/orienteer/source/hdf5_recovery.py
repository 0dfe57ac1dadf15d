"""HDF5 files that are written in place: a lock that admits one writer, and repair after a writer was killed.

HDF5 marks a file as open for writing in its superblock and refuses to write to it again after a crash.  In
the mode in which Orienteer appends (single writer, multiple readers) the data structures are sound at every
moment, so only two fields need repair: the marks, and the end of the file, after which new data go.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orienteer.compute.hdf5_file import read_superblock
from orienteer.errors import FileError


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the right to write to a file in place; a second writer gets a FileError.

    The lock is on a file beside it and ends with the process, however that ends.
    """
    lock_path = path.with_name(f".{path.name}.lock")
    while True:
        lock = lock_path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            hint = "Wait until it has ended."
            raise FileError(path, "is being written by another process.", hint) from error
        if lock_path.exists() and os.path.samestat(os.fstat(lock.fileno()), lock_path.stat()):
            break
        lock.close()  # its last holder removed this lock file between our opening and locking it
    try:
        yield
    finally:
        lock_path.unlink(missing_ok=True)
        lock.close()


def clear_marks_of_dead_writer(path: Path) -> bool:
    """Make a file writable again after its writer was killed; returns whether anything had to be done.

    Call it only while holding :func:`only_writer`.
    """
    superblock = read_superblock(path)
    if superblock is None or not superblock.flags:
        return False
    with path.open("r+b") as file:
        end = max(superblock.end, os.fstat(file.fileno()).st_size)
        file.write(superblock.unmarked(end))
        file.truncate(end)
    return True
