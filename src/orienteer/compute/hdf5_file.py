"""HDF5 files opened for reading: without a lock, and also while they are being written live.

A file that a single writer extends for others to follow (HDF5's SWMR mode) carries a mark in its superblock,
which stays there when the writer is killed.  HDF5's own way to read such a file repeats every read whose
checksum is wrong, pausing twice as long each time, a hundred times: on a damaged file that is for ever.  So
the mark is hidden from the library.  A wrong checksum is then an error at once, and the reader decides
whether to look again.
"""

import io
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from orienteer.compute.reading import HDF5_SIGNATURE

# Superblock version 3 with 8-byte offsets: signature, version, two sizes, flags, four addresses, checksum.
_LAYOUT = struct.Struct("<8sBBBBQQQQI")
_LIVE = 0x04
_MASK = 0xFFFFFFFF


class Superblock(NamedTuple):
    """The first 48 bytes of an HDF5 file of version 3: where it ends, and whether somebody writes to it."""

    signature: bytes
    version: int
    offset_bytes: int
    length_bytes: int
    flags: int
    base: int
    extension: int
    end: int
    root: int
    checksum: int

    @property
    def is_live(self) -> bool:
        """Whether a single writer extends the file, or did until it was killed."""
        return bool(self.flags & _LIVE)

    def unmarked(self, n_bytes: int) -> bytes:
        """The superblock as it would be if nobody wrote and the file ended at ``n_bytes``."""
        content = _LAYOUT.pack(*self._replace(flags=0, end=n_bytes, checksum=0))[:-4]
        return content + struct.pack("<I", jenkins_lookup3(content))


def read_superblock(path: Path) -> Superblock | None:
    """The superblock of a file of version 3; None for every other file.  A wrong checksum is an OSError."""
    with path.open("rb") as file:
        head = file.read(_LAYOUT.size)
    if len(head) < _LAYOUT.size:
        return None
    superblock = Superblock(*_LAYOUT.unpack(head))
    if superblock.signature != HDF5_SIGNATURE or superblock.version != 3 or superblock.offset_bytes != 8:
        return None
    if jenkins_lookup3(head[:-4]) != superblock.checksum:
        raise OSError("the checksum of the HDF5 superblock is wrong")
    return superblock


def open_hdf5_for_reading(path: str | os.PathLike[str]) -> h5py.File:
    """The file, open for reading until it is closed, live or not; any problem is an OSError."""
    superblock = read_superblock(Path(path))
    if superblock is not None and superblock.is_live:
        return LiveFile(Path(path), superblock)
    return h5py.File(path, "r", locking=False)


class LiveFile(h5py.File):  # type: ignore[misc]
    """A file that is being written live, or was until its writer was killed, as it was when it was opened."""

    def __init__(self, path: Path, superblock: Superblock) -> None:
        self._unmarked = _UnmarkedFile(path, superblock)
        try:
            super().__init__(self._unmarked, "r")
        except BaseException:
            self._unmarked.close()
            raise

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._unmarked.close()


class _UnmarkedFile(io.FileIO):
    """The bytes of a file, except that its superblock is unmarked."""

    def __init__(self, path: Path, superblock: Superblock) -> None:
        super().__init__(path, "rb")
        self._path = path
        self._superblock = superblock.unmarked(os.fstat(self.fileno()).st_size)

    def __repr__(self) -> str:
        return os.fspath(self._path)  # h5py uses this as the name of the file

    def readinto(self, buffer: Any) -> int:
        at = self.tell()
        n_read = super().readinto(buffer)
        if at < _LAYOUT.size and n_read:
            end = min(_LAYOUT.size, at + n_read)
            memoryview(buffer)[: end - at] = self._superblock[at:end]
        return n_read


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
            # After seven steps of a cycle of three, the hash is one variable further.
            c = b
    return c


def _rotate(word: int, shift: int) -> int:
    return ((word << shift) | (word >> (32 - shift))) & _MASK
