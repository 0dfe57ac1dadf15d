"""CardWire: arrays go from GPU to GPU, if NCCL is installed and every rank has a GPU of its own."""

import os
from typing import TYPE_CHECKING, Any

from orienteer.compute.arrays import Array, array_namespace

if TYPE_CHECKING:
    from orienteer.compute.ranks.comm import Comm


def nccl_of_cupy() -> Any:
    """CuPy's NCCL, or None if either is missing."""
    try:
        from cupy.cuda import nccl
    except ImportError:
        return None
    return nccl if getattr(nccl, "available", False) else None


def card_of_cupy() -> str:
    """A unique name of the GPU that CuPy works on: its machine and its place on the bus."""
    from cupy.cuda import runtime

    return f"{os.uname().nodename} {runtime.deviceGetPCIBusId(runtime.getDevice())}"


class CardWire:
    """The GPUs of the ranks of a comm, joined by NCCL.

    nccl : the module, ``cupy.cuda.nccl``.
    number : of this rank; identity : result of ``get_unique_id`` on the first rank, the same on all of them.
    """

    def __init__(self, nccl: Any, size: int, identity: Any, number: int) -> None:
        self._nccl, self.size = nccl, size
        self._cards = nccl.NcclCommunicator(size, identity, number)

    @classmethod
    def between(cls, comm: "Comm", nccl: Any, card: str = "") -> "CardWire | None":
        """A wire between the ranks of a comm, or None if there can be none; collective.

        nccl : the module, or None if this rank has none; card : name of the GPU of this rank.
        """
        if why_not(comm, nccl, card):
            return None
        identity = comm.bcast(nccl.get_unique_id() if comm.is_first else None)
        return cls(nccl, comm.size, identity, comm.share(comm.size).start)

    def swap(self, parts: Array) -> Array:
        came = array_namespace(parts).empty_like(parts)
        self._nccl.groupStart()
        for rank in range(self.size):
            self._cards.send(parts[rank].data.ptr, parts[rank].nbytes, self._byte, rank, self._stream())
            self._cards.recv(came[rank].data.ptr, came[rank].nbytes, self._byte, rank, self._stream())
        self._nccl.groupEnd()
        return came

    def collect(self, part: Array) -> Array:
        whole = array_namespace(part).empty((self.size, len(part)), dtype=part.dtype)
        self._cards.allGather(part.data.ptr, whole.data.ptr, part.nbytes, self._byte, self._stream())
        return whole

    def close(self) -> None:
        """Free the communicator of NCCL; no sums are possible afterwards."""
        self._cards.destroy()

    @property
    def _byte(self) -> int:
        return int(self._nccl.NCCL_UINT8)

    def _stream(self) -> int:
        from cupy.cuda import get_current_stream

        return int(get_current_stream().ptr)


def why_not(comm: "Comm", nccl: Any, card: str) -> str:
    """Why sums of these ranks do not go from GPU to GPU, in one sentence; empty if they do.

    Collective; the arguments are those of :meth:`CardWire.between`.
    """
    cards = comm.gather(None if nccl is None else card)
    if None in cards:
        return "CuPy has no NCCL on every rank: sums over ranks go through host memory."
    if len(set(cards)) < len(cards):
        return "Ranks share a GPU, where NCCL cannot add: sums over ranks go through host memory."
    return ""
