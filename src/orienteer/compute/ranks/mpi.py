"""Mpi: ranks that communicate through MPI, from host memory; sums between GPUs may go through NCCL."""

import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.ranks.claims import Claims
from orienteer.compute.ranks.comm import Comm, Serial, Traffic, share_of
from orienteer.compute.ranks.nccl import CardWire, card_of_cupy, nccl_of_cupy
from orienteer.compute.ranks.ordered_sum import ordered_sum
from orienteer.compute.stage_log import count_item, logged

T = TypeVar("T")
Arguments = ParamSpec("Arguments")


def waits(collective: Callable[Arguments, T]) -> Callable[Arguments, T]:
    """Note the time in a collective as waiting: for ranks that are late, and for the network."""

    @functools.wraps(collective)
    def noted(*args: Arguments.args, **kwargs: Arguments.kwargs) -> T:
        with logged("wait"):
            return collective(*args, **kwargs)

    return noted


class Mpi:
    """The ranks of an MPI communicator.

    mpi : an mpi4py communicator, which belongs to this object from now on.
    dynamic : whether work is claimed as ranks become free, or divided evenly beforehand.
    """

    def __init__(self, mpi: Any, *, dynamic: bool = True, n_local: int = 0) -> None:
        from mpi4py import MPI

        self._mpi, self._MPI, self.dynamic = mpi, MPI, dynamic
        self._number: int = mpi.Get_rank()
        self._n_local = n_local
        self._claims: Claims | None = None
        self._cards: list[CardWire | None] = []
        self.n_per_card = 1
        self.traffic = Traffic()

    @property
    def mpi(self) -> Any:
        """The mpi4py communicator, for code that opens windows on it; it must free what it splits off."""
        return self._mpi

    @property
    def size(self) -> int:
        return int(self._mpi.Get_size())

    @property
    def is_first(self) -> bool:
        return self._number == 0

    @property
    def n_local(self) -> int:
        if not self._n_local:
            machine = self._mpi.Split_type(self._MPI.COMM_TYPE_SHARED)
            self._n_local = int(machine.Get_size())
            machine.Free()
        return self._n_local

    # Arrays -----------------------------------------------------------------------------------------------

    @waits
    def sum(self, x: Array) -> Array:
        if is_on_gpu(x) and (cards := self._joined_cards()) is not None:
            found = ordered_sum(cards, array_namespace(x).ascontiguousarray(x))
        else:
            found = _like(x, ordered_sum(self, np.ascontiguousarray(to_numpy(x))))
        self.traffic.note(2 * (self.size - 1) / self.size * getattr(x, "nbytes", 8))
        return found

    @waits
    def max(self, x: Array) -> Array:
        return _like(x, self._reduce(np.ascontiguousarray(to_numpy(x)), self._MPI.MAX))

    @waits
    def min(self, x: Array) -> Array:
        return _like(x, self._reduce(np.ascontiguousarray(to_numpy(x)), self._MPI.MIN))

    @waits
    def rows(self, x: Array) -> Array:
        own = np.ascontiguousarray(to_numpy(x))
        counts = np.empty(self.size, dtype=np.int64)
        self._mpi.Allgather(np.array([len(own)], dtype=np.int64), counts)
        whole = np.empty((int(counts.sum()), *own.shape[1:]), dtype=own.dtype)
        width = own.dtype.itemsize * int(np.prod(own.shape[1:], dtype=np.int64))
        self._mpi.Allgatherv(_bytes(own), _parts(whole, counts * width))
        self.traffic.note((self.size - 1) * own.nbytes)
        return _like(x, whole)

    @waits
    def exchange(self, keys: Array, x: Array) -> tuple[Array, Array]:
        own_keys, own = np.asarray(to_numpy(keys), dtype=np.int64), to_numpy(x)
        to = own_keys % self.size
        order = np.argsort(to, kind="stable")
        counts = np.bincount(to, minlength=self.size).astype(np.int64)
        came = np.empty_like(counts)
        self._mpi.Alltoall(counts, came)
        found = []
        for column in (own_keys, own):
            sent = np.ascontiguousarray(column[order])
            got = np.empty((int(came.sum()), *column.shape[1:]), dtype=column.dtype)
            width = column.dtype.itemsize * int(np.prod(column.shape[1:], dtype=np.int64))
            self._mpi.Alltoallv(_parts(sent, counts * width), _parts(got, came * width))
            self.traffic.note(sent.nbytes - int(counts[self._number]) * width)
            found.append(got)
        return _like(keys, found[0]), _like(x, found[1])

    def swap(self, parts: NDArray[Any]) -> NDArray[Any]:
        """Send part i of (n, m) to rank i; returns the parts from all ranks, (n, m), in their order."""
        came = np.empty_like(parts)
        self._mpi.Alltoall(_bytes(parts), _bytes(came))
        return came

    def collect(self, part: NDArray[Any]) -> NDArray[Any]:
        """The parts (m,) of all ranks, (n, m), in their order."""
        whole = np.empty((self.size, len(part)), dtype=part.dtype)
        self._mpi.Allgather(_bytes(part), _bytes(whole))
        return whole

    def _joined_cards(self) -> CardWire | None:
        """The wire between the GPUs of these ranks, or None; made once, collectively."""
        if not self._cards:
            self._cards.append(CardWire.between(self, nccl_of_cupy(), card_of_cupy()))
        return self._cards[0]

    def _reduce(self, own: NDArray[Any], operation: Any) -> NDArray[Any]:
        whole = np.empty_like(own)
        self._mpi.Allreduce(own, whole, op=operation)
        self.traffic.note(2 * (self.size - 1) / self.size * own.nbytes)
        return whole

    # Plain values -----------------------------------------------------------------------------------------

    @waits
    def bcast(self, value: T) -> T:
        packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if self.is_first else b""
        length = np.array([len(packed)], dtype=np.int64)
        self._mpi.Bcast(length)
        buffer = (
            np.frombuffer(packed, np.uint8).copy() if self.is_first else np.empty(int(length[0]), np.uint8)
        )
        self._mpi.Bcast(buffer)
        self.traffic.note((self.size - 1) * len(buffer) if self.is_first else 0)
        found: T = value if self.is_first else pickle.loads(buffer)
        return found

    @waits
    def gather(self, value: T) -> list[T]:
        own = np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8)
        lengths = np.empty(self.size, dtype=np.int64)
        self._mpi.Allgather(np.array([len(own)], dtype=np.int64), lengths)
        whole = np.empty(int(lengths.sum()), dtype=np.uint8)
        starts = _starts(lengths)
        self._mpi.Allgatherv(own, _parts(whole, lengths))
        self.traffic.note((self.size - 1) * len(own))
        found: list[T] = [
            pickle.loads(whole[a : a + n]) for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)
        ]
        return found

    def agree(self, error: Exception | None) -> None:
        for found in self.gather(error):
            if found is not None:
                raise found

    # Work -------------------------------------------------------------------------------------------------

    def share(self, n: int) -> slice:
        return share_of(n, self._number, self.size)

    def claimed(self, items: Sequence[T]) -> Iterator[T]:
        if not self.dynamic:
            for item in items[self._number :: self.size]:
                yield item
                count_item()
            return
        if self._claims is None:
            self._claims = Claims(self._mpi)
        for number in self._claims.numbers(len(items)):
            yield items[number]
            count_item()

    def split(self, group: int, *, dynamic: bool = True) -> Comm:
        parts = self._mpi.Split(group, self._number)
        if parts.Get_size() == 1:
            parts.Free()
            return Serial()
        split = Mpi(parts, dynamic=dynamic, n_local=self.n_local)
        split.n_per_card = self.n_per_card
        return split

    def close(self) -> None:
        if self._claims is not None:
            self._claims.free()
            self._claims = None
        for cards in filter(None, self._cards):
            cards.close()
        if self._mpi != self._MPI.COMM_NULL:
            self._mpi.Free()


def _like(x: Array, found: NDArray[Any]) -> Array:
    """The result on the device of ``x``; a plain number if ``x`` is one."""
    if is_on_gpu(x):
        return array_namespace(x).asarray(found)
    return found if isinstance(x, np.ndarray) else found[()].item()


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _parts(array: NDArray[Any], counts: NDArray[np.int64]) -> list[Any]:
    """A buffer and the bytes of it that belong to each rank, one after the other."""
    return [_bytes(array), (counts, _starts(counts))]


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
