"""HDF5 files whose writer was killed: one lock per writer, and the marks of a dead one cleared.

HDF5 marks a file as open for writing in its superblock and refuses to write to it again after a crash.  In
the mode in which Orienteer appends (single writer, multiple readers) the data structures are sound at every
moment, so only two fields need mending: the marks, and the end of the file, behind which new data go.
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orienteer.errors import FileError

# Superblock version 3 with 8-byte offsets: signature, version, two sizes, flags, four addresses, checksum.
_SUPERBLOCK = struct.Struct("<8sBBBBQQQQI")
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MASK = 0xFFFFFFFF


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
    """Make a file writable again whose writer was killed; whether anything had to be done.

    Call it only while holding :func:`only_writer`.
    """
    with path.open("r+b") as file:
        head = file.read(_SUPERBLOCK.size)
        if len(head) < _SUPERBLOCK.size:
            return False
        signature, version, offsets, lengths, flags, base, extension, end, root, checksum = (
            _SUPERBLOCK.unpack(head)
        )
        if signature != _SIGNATURE or version != 3 or offsets != 8 or not flags:
            return False
        if jenkins_lookup3(head[:-4]) != checksum:
            raise FileError(path, "has a damaged superblock.", "Restore the file from a copy.")
        end = max(end, os.fstat(file.fileno()).st_size)
        mended = _SUPERBLOCK.pack(signature, version, offsets, lengths, 0, base, extension, end, root, 0)[:-4]
        file.seek(0)
        file.write(mended + struct.pack("<I", jenkins_lookup3(mended)))
        file.truncate(end)
    return True


def jenkins_lookup3(data: bytes) -> int:
    """The checksum that HDF5 keeps over its metadata: Bob Jenkins' lookup3 hash (public domain), seed 0."""
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    padded = data + bytes(-len(data) % 12)
    words = struct.unpack(f"<{len(padded) // 4}I", padded)
    for i in range(0, len(words), 3):
        a, b, c = (a + words[i]) & _MASK, (b + words[i + 1]) & _MASK, (c + words[i + 2]) & _MASK
        if i + 3 < len(words):
            for shift in (4, 6, 8, 16, 19, 4):
                a = ((a - c) & _MASK) ^ _rotate(c, shift)
                c = (c + b) & _MASK
                a, b, c = b, c, a
        else:
            for shift in (14, 11, 25, 16, 4, 14, 24):
                c = ((c ^ b) - _rotate(b, shift)) & _MASK
                a, b, c = b, c, a
            # Seven steps of a cycle of three leave the hash one place on.
            c = b
    return c


def _rotate(word: int, shift: int) -> int:
    return ((word << shift) | (word >> (32 - shift))) & _MASK
