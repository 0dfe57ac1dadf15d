"""Comm: communication between ranks, and the case of a single rank.

Code that works on frames or volumes never uses the number of its rank.  It takes its share of the work, does
it, and joins the results with ``sum``, ``max`` or ``rows``.  On one rank, each of these is the identity and
costs nothing.

Every method but ``share`` is collective: all ranks of a comm call it in the same order, with arrays of the
same type.  Results are the same bits on every rank, and the same in every run on as many ranks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array

T = TypeVar("T")

# Items of a block: few enough to divide the work evenly, and enough to be fast.
_BLOCK = {"cpu": 64, "cuda": 1024}


@dataclass
class Traffic:
    """What one rank has sent to others.

    n_bytes : bytes, n_calls : collectives.  Of n ranks, each sends

        sum, max, min : 2 (n - 1) / n times the bytes of the array,
        rows          : (n - 1) times the bytes of its own rows,
        bcast, gather : what was pickled, (n - 1) times; bcast only on the first rank.
    """

    n_bytes: int = 0
    n_calls: int = 0

    def note(self, n_bytes: float) -> None:
        """Count one collective in which this rank has sent this many bytes."""
        self.n_bytes += round(n_bytes)
        self.n_calls += 1


class Comm(Protocol):
    """A set of ranks that work together.

    size : number of ranks.
    is_first : whether this is the rank that acts for all, such as writing to a file or a terminal.
    n_local : ranks of the whole run that share the memory and the cores of this machine.
    n_per_card : of these, the ranks that use the same GPU as this one.
    traffic : what this rank has sent through this comm.
    """

    @property
    def size(self) -> int: ...

    @property
    def is_first(self) -> bool: ...

    @property
    def n_local(self) -> int: ...

    @property
    def n_per_card(self) -> int: ...

    @property
    def traffic(self) -> Traffic: ...

    def sum(self, x: Array) -> Array:
        """The sum over ranks of arrays of one shape and type, added in the order of ranks; also of numbers.

        On one rank it is ``x`` itself, on several a new array, on the device of ``x``.
        """
        ...

    def max(self, x: Array) -> Array:
        """The largest over ranks, element by element."""
        ...

    def min(self, x: Array) -> Array:
        """The smallest over ranks, element by element."""
        ...

    def rows(self, x: Array) -> Array:
        """The rows (n_r, ...) of all ranks one after the other, in the order of ranks: (sum of n_r, ...)."""
        ...

    def exchange(self, keys: Array, x: Array) -> tuple[Array, Array]:
        """Send each row of (n, ...) to the rank of its key (n,) int64, which is the key modulo size.

        Returns the keys and rows that came here, in the order of the ranks that sent them.
        """
        ...

    def bcast(self, value: T) -> T:
        """The value of the first rank, on all; any plain value, arrays included."""
        ...

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, in the order of ranks, on all of them; any plain value."""
        ...

    def agree(self, error: Exception | None) -> None:
        """Raise the error of the first rank that has one, on all; None: this rank has none."""
        ...

    def share(self, n: int) -> slice:
        """The part of n items, side by side, that this rank takes; parts differ by one item at most."""
        ...

    def claimed(self, items: Sequence[T]) -> Iterator[T]:
        """The items that this rank works on; each item goes to one rank.

        Ranks claim items as they become free, so that slow ranks take fewer; if that was switched off, every
        rank takes the same number.  Results must not depend on which rank worked on an item, and the loop
        must be followed by a collective.
        """
        ...

    def split(self, group: int, *, dynamic: bool = True) -> "Comm":
        """The ranks that gave the same number, in the order that they have here.

        dynamic : whether they claim work as they become free, or have it divided beforehand.
        """
        ...

    def close(self) -> None:
        """Free what MPI keeps for a comm that was split off, which cannot be used afterwards."""
        ...


class Serial:
    """One rank, alone: everything is the identity."""

    size, is_first, n_local, n_per_card = 1, True, 1, 1

    def __init__(self) -> None:
        self.traffic = Traffic()

    def sum(self, x: Array) -> Array:
        return x

    def max(self, x: Array) -> Array:
        return x

    def min(self, x: Array) -> Array:
        return x

    def rows(self, x: Array) -> Array:
        return x

    def exchange(self, keys: Array, x: Array) -> tuple[Array, Array]:
        return keys, x

    def bcast(self, value: T) -> T:
        return value

    def gather(self, value: T) -> list[T]:
        return [value]

    def agree(self, error: Exception | None) -> None:
        if error is not None:
            raise error

    def share(self, n: int) -> slice:
        return slice(0, n)

    def claimed(self, items: Sequence[T]) -> Iterator[T]:
        return iter(items)

    def split(self, group: int, *, dynamic: bool = True) -> "Serial":
        return Serial()

    def close(self) -> None:
        pass


SERIAL: Comm = Serial()


def complete_rows(comm: Comm, places: Array, *columns: Any) -> None:
    """Fill the rows of columns (N, ...) that other ranks have computed, in place.

    places : (n,) rows that this rank has computed; if several ranks compute a row, their results are equal.
    columns : NumPy arrays of the same N, equal on all ranks except for these rows.
    """
    if comm.size == 1:
        return
    # One collective for all columns, packed as bytes: with many ranks, every collective costs many messages.
    own = [np.ascontiguousarray(each) for each in (places, *(column[places] for column in columns))]
    packed = np.concatenate([each.view(np.uint8).reshape(len(places), _width(each)) for each in own], axis=1)
    whole = comm.rows(packed)
    ends = np.cumsum([0, *(_width(each) for each in own)])
    parts = [np.ascontiguousarray(whole[:, first:last]) for first, last in pairwise(ends.tolist())]
    everywhere = parts[0].view(own[0].dtype).reshape(-1)
    for column, part in zip(columns, parts[1:], strict=True):
        column[everywhere] = part.view(column.dtype).reshape(len(whole), *column.shape[1:])


def own_blocks(comm: Comm, n: int, on_gpu: bool) -> list[slice]:
    """The blocks of n items, side by side, that this rank takes; the same blocks for any number of ranks.

    The last bits of matrix products, and of partial sums that are rounded, depend on how many items are
    processed together.

    >>> own_blocks(SERIAL, 100, False)
    [slice(0, 64, None), slice(64, 100, None)]
    """
    size = _BLOCK["cuda" if on_gpu else "cpu"]
    blocks = [slice(first, min(first + size, n)) for first in range(0, n, size)]
    return blocks[comm.share(len(blocks))]


def _width(rows: NDArray[Any]) -> int:
    """Bytes of a row."""
    return int(rows.dtype.itemsize * np.prod(rows.shape[1:], dtype=np.int64))


def share_of(n: int, number: int, size: int) -> slice:
    """Part ``number`` of n items that are cut into ``size`` parts as even as possible.

    >>> [share_of(7, number, 3) for number in range(3)]
    [slice(0, 2, None), slice(2, 4, None), slice(4, 7, None)]
    """
    return slice(number * n // size, (number + 1) * n // size)
