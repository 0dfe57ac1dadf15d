"""Tiles in MPI windows: one copy on a node, or one on a group of nodes.

Every rank keeps its share in a window.  A rank reads windows on its own node in place, and those on other
nodes by one-sided copies, without action by the holder.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.errors import OrienteerError
from orienteer.mtip.references.order import shares, visiting_order
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks


class WindowStore:
    """Tiles shared by all ranks of a group; see :class:`Store`.

    ranks : the group.  All of them make and close the store together.
    serves_threads : whether MPI lets a second thread fetch tiles.
    """

    def __init__(self, tiling: Tiling, ranks: Ranks) -> None:
        from mpi4py import MPI

        self.tiling, self._comm, self.rank = tiling, ranks.comm, int(ranks.comm.rank)
        self.serves_threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        held = shares(len(tiling), ranks.comm.size)
        self.own = held[self.rank]
        self.order = [held[holder] for holder in visiting_order(ranks.nodes, self.rank)]
        self._holder = np.repeat(np.arange(len(held)), [len(share) for share in held])
        self._first = [share.start for share in held]
        self.bytes_kept = len(self.own) * tiling.slot_bytes
        is_one_node = len(ranks.nodes) == 1
        info = MPI.Info.Create()
        # Each rank's memory begins on a page of its own, close to the rank that writes it.
        info["alloc_shared_noncontig"] = "true"
        allocate = MPI.Win.Allocate_shared if is_one_node else MPI.Win.Allocate
        failed = ""
        try:
            self._window = allocate(self.bytes_kept, 1, info, ranks.comm)
        except MPI.Exception as error:
            failed = str(error)
        finally:
            info.Free()
        if failed:
            raise OrienteerError(
                f"MPI gave no window of {self.bytes_kept / 2**30:.2f} GiB for references: {failed}.",
                'Set references = "recompute", or use more ranks, so that each keeps less.',
            )
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self._mates = {
            rank: _memory_of(self._window, rank, self.rank, is_one_node)
            for rank in ranks.nodes[ranks.own_node]
        }

    def holder(self, tile: int) -> int:
        """The rank of the group that keeps a tile."""
        return int(self._holder[tile])

    def in_place(self, tile: int) -> NDArray[np.uint8] | None:
        """The slot of a tile if it is kept on this node, else None."""
        memory = self._mates.get(self.holder(tile))
        return None if memory is None else memory[self._part(tile)]

    def fetch(self, tile: int, into: NDArray[np.uint8]) -> None:
        """Copy a slot from the window of its holder, without action by the holder."""
        holder, size = self.holder(tile), self.tiling.slot_bytes
        self._window.Get([into, size, _bytes()], holder, (self._part(tile).start, size, _bytes()))
        self._window.Flush(holder)

    def write(self, tile: int, values: Array) -> None:
        """Fill the slot of an own tile."""
        memory = self._mates[self.rank]
        assert memory is not None
        self.tiling.write(tile, values, memory[self._part(tile)])

    def meet(self) -> None:
        """A barrier; afterwards all ranks see what was written before."""
        self._window.Sync()
        self._comm.Barrier()
        self._window.Sync()

    def close(self) -> None:
        """Free the window; all ranks of the group call this together."""
        self._mates = {}
        self._window.Unlock_all()
        self._window.Free()
        self._comm.Free()

    def _part(self, tile: int) -> slice:
        first = (tile - self._first[self.holder(tile)]) * self.tiling.slot_bytes
        return slice(first, first + self.tiling.slot_bytes)


def _bytes() -> Any:
    from mpi4py import MPI

    return MPI.BYTE


def _memory_of(window: Any, rank: int, own: int, is_one_node: bool) -> NDArray[np.uint8] | None:
    """The part of a window that belongs to a rank of this node, (nbytes,); None: it cannot be read in place.

    Ranks of one node can read windows over several nodes in place from MPI 4.1 on; before, tiles are copied.
    """
    from mpi4py import MPI

    try:
        memory = window.Shared_query(rank)[0]
    except MPI.Exception:
        if is_one_node:
            raise
        memory = window.tomemory() if rank == own else None
    return None if memory is None else np.frombuffer(memory, dtype=np.uint8)
