"""A writer that extends a file in place and its readers take turns, so that nobody reads what is changing.

A turn is a lock on an empty file beside the data; it ends with the process, however that ends.  Waiting is
limited, so that a reader that hangs does not stop the writer, nor the other way round.  If there is no such
file, or its disk has no locks, nobody waits at all.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

# The writer must keep up with the experiment; a reader has time.
_WRITER_WAITS_S, _READER_WAITS_S, _PAUSE_S = 0.2, 2.0, 0.001


class WriterTurns:
    """The turns of the one writer of a file; the file that is locked exists until ``close``."""

    def __init__(self, path: Path) -> None:
        self._path = _turn_path(path)
        self._file = self._path.open("w")
        self._depth = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Change the file inside this block; a block within another is part of it."""
        if self._depth == 0:
            _lock(self._file, fcntl.LOCK_EX, _WRITER_WAITS_S)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Remove the file that is locked: there will be no more turns."""
        self._path.unlink(missing_ok=True)
        self._file.close()


@contextmanager
def reader_turn(path: Path) -> Iterator[None]:
    """Read the file inside this block."""
    try:
        file = _turn_path(path).open("rb")
    except OSError:  # nobody writes
        file = None
    # Not inside of "except": an error in the block would keep this one, and with it what the block has open.
    if file is None:
        yield
        return
    with file:
        _lock(file, fcntl.LOCK_SH, _READER_WAITS_S)
        yield


def _turn_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.turn")


def _lock(file: IO[str] | IO[bytes], kind: int, patience_s: float) -> bool:
    """Wait at most this long for the lock; returns whether it was taken."""
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
        except OSError:  # a disk without locks
            return False
        time.sleep(_PAUSE_S)
