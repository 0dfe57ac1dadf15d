"""CardWire: arrays go from card to card, where NCCL is there and every rank has a card of its own."""

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


class CardWire:
    """The cards of the ranks of a comm, joined by NCCL.

    nccl : the module, ``cupy.cuda.nccl``.
    number : of this rank; identity : what ``get_unique_id`` has told the first rank, on all of them.
    """

    def __init__(self, nccl: Any, size: int, identity: Any, number: int) -> None:
        self._nccl, self.size = nccl, size
        self._cards = nccl.NcclCommunicator(size, identity, number)

    @classmethod
    def between(cls, comm: "Comm", nccl: Any) -> "CardWire | None":
        """A wire between the ranks of a comm, asked for by all of them together; None: there is none.

        nccl : the module, or None where this rank has none.
        """
        if not all(comm.gather(nccl is not None and comm.n_per_card == 1)):
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
