"""Where tiles are kept: the contract of a store, and the store in the memory of one process."""

from typing import Protocol

import numpy as np

from orienteer.compute.arrays import Array, DeviceName, namespace_of_device
from orienteer.mtip.references.tiling import Tiling


class Store(Protocol):
    """Slots for all tiles.  Each rank writes its own tiles; then, after ``meet``, every rank reads all."""

    tiling: Tiling
    order: list[range]
    """Tiles in the order in which this rank should read them, step by step."""
    own: range
    """Tiles that this rank writes."""
    bytes_kept: int
    """Memory of this rank that holds tiles."""
    rank: int

    def holder(self, tile: int) -> int:
        """The rank that keeps a tile."""
        ...

    def in_place(self, tile: int) -> Array | None:
        """The slot of a tile if this rank can read it without a copy, else None."""
        ...

    def fetch(self, tile: int, into: Array) -> None:
        """Copy the slot of a tile into a buffer."""
        ...

    def write(self, tile: int, values: Array) -> None:
        """Fill the slot of an own tile with slices (T, P) or (P, T)."""
        ...

    def meet(self) -> None:
        """Wait for all ranks; afterwards each sees what the others wrote before."""
        ...

    def close(self) -> None:
        """Release everything; all ranks call this together."""
        ...


class MemoryStore:
    """All tiles in the memory of this process.

    device : "cpu", or "cuda" for the memory of the GPU.
    """

    def __init__(self, tiling: Tiling, device: DeviceName = "cpu") -> None:
        self.tiling, self.own, self.rank = tiling, range(len(tiling)), 0
        self.order = [self.own]
        self.bytes_kept = len(tiling) * tiling.slot_bytes
        xp = namespace_of_device(device)
        self._slots = xp.empty((len(tiling), tiling.slot_bytes), dtype=np.uint8)

    def holder(self, tile: int) -> int:
        """Always this rank."""
        return self.rank

    def in_place(self, tile: int) -> Array:
        """The slot of any tile."""
        return self._slots[tile]

    def fetch(self, tile: int, into: Array) -> None:
        """Copy a slot; not needed, since all can be read in place."""
        into[...] = self._slots[tile]

    def write(self, tile: int, values: Array) -> None:
        """Fill a slot."""
        self.tiling.write(tile, values, self._slots[tile])

    def meet(self) -> None:
        """Nothing to wait for: there is only this process."""

    def close(self) -> None:
        """Release the memory."""
        self._slots = np.empty((0, 0), dtype=np.uint8)
