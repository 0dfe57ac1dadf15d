"""HDF5 files written such that a full disk gives a clear error.

The HDF5 library crashes if it cannot write what it still holds when a file closes.  It is therefore given a
file to which writing never fails: the first failure is stored, later writes stay in memory, and the failure
is raised as soon as the library has finished what it was doing.  For the same reason, signals that would
raise an exception wait until the library is done.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import h5py

from orienteer.compute.atomic import atomic_path

_PAGE_BYTES = 4096
# Longer writes are frames, which a writer does not read again; shorter ones may be the library's own tables.
_LONGEST_KEPT_BYTES = 1 << 20


class NeverFailingFile:
    """A new file for h5py's "fileobj" driver; ``failure`` is the first error, if there was one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._position = 0
        self._end = 0
        self._pages: dict[int, bytearray] = {}
        self.failure: BaseException | None = None

    def __repr__(self) -> str:
        return self._path  # h5py uses this as the name of the file

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte, counted from the start or the end."""
        self._position = offset + (self._end if whence == os.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """Position of the next byte."""
        return self._position

    def read(self, n_bytes: int) -> bytes:
        """The next bytes; zeros behind the end."""
        buffer = bytearray(n_bytes)
        self.readinto(buffer)
        return bytes(buffer)

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes, and with zeros behind the end."""
        view = memoryview(buffer)
        try:
            self._read_at(self._position, view)
        except BaseException as error:
            self.failure = self.failure or error
        self._position += len(view)
        return len(view)

    def write(self, data: Any) -> int:
        """Put the bytes into the file, or into memory after the first failure."""
        view = memoryview(data)
        if self.failure is None:
            try:
                _write_all(self._descriptor, view, self._position)
            except BaseException as error:
                self.failure = error
        if self.failure is not None and len(view) <= _LONGEST_KEPT_BYTES:
            with suppress(Exception):  # nothing more can be lost
                self._keep(self._position, view)
        self._position += len(view)
        self._end = max(self._end, self._position)
        return len(view)

    def truncate(self, n_bytes: int) -> int:
        """Set the length of the file."""
        if self.failure is None:
            try:
                os.ftruncate(self._descriptor, n_bytes)
            except BaseException as error:
                self.failure = error
        self._end = n_bytes
        return n_bytes

    def flush(self) -> None:
        """Do nothing: this object holds nothing back."""

    def close(self) -> None:
        """Close the file; later writes fail without a report."""
        descriptor, self._descriptor = self._descriptor, -1
        self._pages.clear()
        if descriptor >= 0:
            os.close(descriptor)

    def raise_failure(self) -> None:
        """Raise the first error, if there was one."""
        if self.failure is not None:
            raise self.failure

    def _read_at(self, start: int, view: memoryview) -> None:
        n_read = 0
        while n_read < len(view) and (n := os.preadv(self._descriptor, [view[n_read:]], start + n_read)):
            n_read += n
        view[n_read:] = bytes(len(view) - n_read)
        if self._pages:
            for page, in_page, in_view in _shared_with_pages(start, len(view)):
                if page in self._pages:
                    view[in_view] = self._pages[page][in_page]

    def _keep(self, start: int, view: memoryview) -> None:
        for page, in_page, in_view in _shared_with_pages(start, len(view)):
            if page not in self._pages:
                content = bytearray(_PAGE_BYTES)
                with suppress(OSError):
                    self._read_at(page * _PAGE_BYTES, memoryview(content))
                self._pages[page] = content
            self._pages[page][in_page] = view[in_view]


def _write_all(descriptor: int, view: memoryview, start: int) -> None:
    """Write all bytes: a disk that is nearly full takes some of them before it refuses."""
    n_written = 0
    while n_written < len(view):
        n_written += os.pwrite(descriptor, view[n_written:], start + n_written)


def _shared_with_pages(start: int, n_bytes: int) -> Iterator[tuple[int, slice, slice]]:
    """Each page that the bytes from ``start`` touch: its number, and the shared part in page and bytes."""
    end = start + n_bytes
    for page in range(start // _PAGE_BYTES, -(-end // _PAGE_BYTES)):
        first = page * _PAGE_BYTES
        low, high = max(start, first), min(end, first + _PAGE_BYTES)
        yield page, slice(low - first, high - first), slice(low - start, high - start)


class NewHdf5File(h5py.File):  # type: ignore[misc]
    """A new HDF5 file to which writing never fails at once; write to it inside ``signals_wait()``.

    Errors in writing are raised by ``raise_failure()``, and at the latest when the file closes.
    """

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self._bytes = NeverFailingFile(path)
        try:
            with signals_wait():
                super().__init__(self._bytes, "w", **options)
        except BaseException:
            self._bytes.close()
            raise

    def raise_failure(self) -> None:
        """Raise the first error in writing, if there was one."""
        self._bytes.raise_failure()

    def close(self) -> None:
        """Write what is still held back and close; then raise the first error, if there was one."""
        self.discard()
        self.raise_failure()

    def discard(self) -> None:
        """Close without reporting errors."""
        with signals_wait():
            try:
                super().close()
            finally:
                self._bytes.close()


@contextmanager
def new_hdf5(path: str | os.PathLike[str], **options: Any) -> Iterator[h5py.File]:
    """A file to be filled inside the block; it gets its final name if the block ends without an error."""
    with atomic_path(path) as temporary, signals_wait(), NewHdf5File(temporary, **options) as file:
        yield file


@contextmanager
def signals_wait() -> Iterator[None]:
    """Signal handlers in Python run when the block ends, not inside it, as around a call into C."""
    handled = {}
    if threading.current_thread() is threading.main_thread():
        handled = {number: signal.getsignal(number) for number in signal.valid_signals()}
        handled = {number: handler for number, handler in handled.items() if callable(handler)}
    arrived: list[int] = []
    replaced = []
    try:
        for number in handled:
            replaced.append(number)
            signal.signal(number, lambda arrived_now, _: arrived.append(arrived_now))
        yield
    finally:
        for number in replaced:
            signal.signal(number, handled[number])
        for late in dict.fromkeys(arrived):
            signal.raise_signal(late)
