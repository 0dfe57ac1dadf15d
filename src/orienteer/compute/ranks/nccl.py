"""CardWire: arrays go from card to card, where NCCL is there and every rank has a card of its own."""

import os
from typing import TYPE_CHECKING, Any

from orienteer.compute.arrays import Array, array_namespace

if TYPE_CHECKING:
    from orienteer.compute.ranks.comm import Comm


def nccl_of_cupy() -> Any:
    """CuPy's NCCL, or None where either is not there."""
    try:
        from cupy.cuda import nccl
    except ImportError:
        return None
    return nccl if getattr(nccl, "available", False) else None


def card_of_cupy() -> str:
    """The card that CuPy works on, by its machine and its place on the bus; nobody else's has this name."""
    from cupy.cuda import runtime

    return f"{os.uname().nodename} {runtime.deviceGetPCIBusId(runtime.getDevice())}"


class CardWire:
    """The cards of the ranks of a comm, joined by NCCL.

    nccl : the module, ``cupy.cuda.nccl``.
    number : of this rank; identity : what ``get_unique_id`` has told the first rank, on all of them.
    """

    def __init__(self, nccl: Any, size: int, identity: Any, number: int) -> None:
        self._nccl, self.size = nccl, size
        self._cards = nccl.NcclCommunicator(size, identity, number)

    @classmethod
    def between(cls, comm: "Comm", nccl: Any, card: str = "") -> "CardWire | None":
        """A wire between the ranks of a comm, asked for by all of them together; None: there is none.

        nccl : the module, or None where this rank has none; card : name of the card of this rank.
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
        """Let go of the cards; nobody asks for a sum any more."""
        self._cards.destroy()

    @property
    def _byte(self) -> int:
        return int(self._nccl.NCCL_UINT8)

    def _stream(self) -> int:
        from cupy.cuda import get_current_stream

        return int(get_current_stream().ptr)


def why_not(comm: "Comm", nccl: Any, card: str) -> str:
    """Why sums of these ranks do not go from card to card, in one sentence; empty: they do.

    Asked for by all ranks together, with what :meth:`CardWire.between` is given.
    """
    cards = comm.gather(None if nccl is None else card)
    if None in cards:
        return "CuPy has no NCCL on every rank: sums over ranks go through host memory."
    if len(set(cards)) < len(cards):
        return "Ranks share a GPU, between which NCCL cannot add: sums over ranks go through host memory."
    return ""
