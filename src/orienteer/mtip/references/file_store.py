"""Tiles in a file: one copy on the disk of every node, for references too large for memory."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.errors import FileError
from orienteer.mtip.references.order import shares
from orienteer.mtip.references.tiling import Tiling


class FileStore:
    """Tiles in a file without a name, which vanishes when the last process closes it; see :class:`Store`.

    folder : where the file is made; it must have room for all tiles.
    node : an mpi4py communicator of the ranks that share the file; None: this process alone.
    """

    def __init__(self, tiling: Tiling, folder: str | os.PathLike[str], node: Any = None) -> None:
        self.tiling, self._node = tiling, node
        self.rank, size = (0, 1) if node is None else (int(node.rank), int(node.size))
        held = shares(len(tiling), size)
        self.own = held[self.rank]
        # All ranks read the disk from front to back, at about the same place: the first to read a tile puts
        # it into the page cache for the others.
        self.order = held
        self._holder = np.repeat(np.arange(size), [len(share) for share in held])
        self.bytes_kept = 0
        self._file = _open(Path(folder), len(tiling) * tiling.slot_bytes, node)
        self._slot = np.empty(tiling.slot_bytes, dtype=np.uint8)

    def holder(self, tile: int) -> int:
        """The rank that wrote a tile."""
        return int(self._holder[tile])

    def in_place(self, tile: int) -> None:
        """Always None: tiles must be read from the file."""
        return

    def fetch(self, tile: int, into: NDArray[np.uint8]) -> None:
        """Read a slot."""
        part = memoryview(into)[: self.tiling.slot_bytes]
        at = tile * self.tiling.slot_bytes
        while part:
            n = os.preadv(self._file, [part], at)
            if n == 0:
                raise FileError("references", f"the file ends within tile {tile}.", "Is the disk damaged?")
            part, at = part[n:], at + n

    def write(self, tile: int, values: Array) -> None:
        """Write a slot."""
        self.tiling.write(tile, values, self._slot)
        part, at = memoryview(self._slot), tile * self.tiling.slot_bytes
        while part:
            n = os.pwrite(self._file, part, at)
            part, at = part[n:], at + n

    def flush(self) -> None:
        """Wait until everything written is on the disk."""
        os.fdatasync(self._file)

    def meet(self) -> None:
        """A barrier for the ranks of the node."""
        if self._node is not None:
            self._node.Barrier()

    def close(self) -> None:
        """Release the space on the disk."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._node is not None:
            self._node.Free()
            self._node = None


def _open(folder: Path, nbytes: int, node: Any) -> int:
    """A file of ``nbytes``, open on all ranks of the node; its name is removed before it is used."""
    path, trouble = "", ""
    if node is None or node.rank == 0:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file, path = tempfile.mkstemp(prefix="references-", dir=folder)
            try:
                os.posix_fallocate(file, 0, nbytes)
            except OSError:
                os.close(file)
                os.unlink(path)
                raise
        except OSError as error:
            trouble = error.strerror or str(error)
    if node is not None:
        path, trouble = node.bcast((path, trouble))
    if trouble:
        raise FileError(
            folder, f"{nbytes / 2**30:.2f} GiB of references cannot be written: {trouble}.",
            'Name a folder with more room, or set references = "recompute".',
        )  # fmt: skip
    if node is not None and node.rank != 0:
        file = os.open(path, os.O_RDWR)
    if node is not None:
        node.Barrier()
    if node is None or node.rank == 0:
        os.unlink(path)
    return file
