"""Disk space reserved in advance, for HDF5 files that grow in place.

A file that others read while it is written has to be written by the HDF5 library itself, which crashes when
the disk is full.  The space is therefore reserved before the library needs it, and what it did not use is
released.  If a file system cannot reserve space (some network disks), the free space is only checked.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import resource

import h5py

# For the library's own tables: the index of chunks and the headers.
_TABLES_BYTES = 1 << 20
# From the C library of Linux, because Python's posix_fallocate moves the end of the file.
_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_KEEP_SIZE = 1
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class ReservedRoom:
    """Space behind the end of an open file, enough for the bytes that were announced since the last flush."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._descriptor = file.id.get_vfd_handle()
        self._announced = 0
        chunks = [0]

        def add_chunk(_: str, item: object) -> None:
            if isinstance(item, h5py.Dataset) and item.chunks is not None:
                chunks.append(math.prod(item.chunks) * item.dtype.itemsize)

        file.visititems(add_chunk)
        # The last chunk of each table moves when it grows.
        self._least = sum(chunks) + _TABLES_BYTES

    def reserve(self, n_bytes: int) -> None:
        """Reserve space for this many bytes more; an OSError if the disk does not have it."""
        self._announced += n_bytes
        # A chunk that the library wrote out half full is written a second time.
        wanted = 2 * self._announced + self._least
        end = self._file.id.get_filesize()
        longest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if longest != resource.RLIM_INFINITY and end + wanted > longest:
            raise _error(errno.EFBIG)
        # Behind the end, which must not move: readers take the length of the file as the end of the data.
        if _fallocate is not None and _fallocate(self._descriptor, _KEEP_SIZE, end, wanted) == 0:
            return
        reason = errno.EOPNOTSUPP if _fallocate is None else ctypes.get_errno()
        if reason not in _UNSUPPORTED:
            raise _error(reason)
        disk = os.fstatvfs(self._descriptor)
        if disk.f_bavail * disk.f_frsize < wanted:
            raise _error(errno.ENOSPC)

    def release(self) -> None:
        """Release the space that was not needed; call it after the file has been flushed."""
        self._announced = 0
        os.ftruncate(self._descriptor, self._file.id.get_filesize())


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
