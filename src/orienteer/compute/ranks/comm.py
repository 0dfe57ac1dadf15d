"""Comm: what ranks can ask of each other, and the rank that is alone.

Nobody who works on frames or volumes asks which rank it is.  It asks for its share of the work, does it, and
joins what came out with ``sum``, ``max`` or ``rows``.  Alone, every one of these is the identity and free.

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

# Items that are worked on together: few enough to be shared out, and enough to be quick.
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
        """One collective in which this rank has sent so many bytes."""
        self.n_bytes += round(n_bytes)
        self.n_calls += 1


class Comm(Protocol):
    """A set of ranks that work together.

    size : how many they are.
    is_first : whether this is the one of them that speaks for all, such as to a file or a terminal.
    n_local : ranks of the whole run that share the memory and the cores of this machine.
    n_per_card : of these, the ranks that share the card of this one.
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
        """Rows (n, ...) go to the rank that their key (n,) int64 belongs to: key modulo size.

        Returns keys and rows that came here, in the order of the ranks that sent them.
        """
        ...

    def bcast(self, value: T) -> T:
        """What the first rank gives, on all; any plain value, arrays included."""
        ...

    def gather(self, value: T) -> list[T]:
        """What every rank gives, in the order of ranks, on all of them; any plain value."""
        ...

    def agree(self, error: Exception | None) -> None:
        """Raise the error of the first rank that has one, on all; None: this rank has none."""
        ...

    def share(self, n: int) -> slice:
        """The part of n items, side by side, that this rank takes; parts differ by one item at most."""
        ...

    def claimed(self, items: Sequence[T]) -> Iterator[T]:
        """The items that this rank is to work on: each goes to one rank.

        Ranks claim one after the other as they become free, so that slow ones take fewer; or, where that was
        switched off, every rank has the same number.  What comes of the items must not depend on who had
        them, and there must be a collective after the loop.
        """
        ...

    def split(self, group: int, *, dynamic: bool = True) -> "Comm":
        """The ranks that gave the same number, in the order that they have here.

        dynamic : whether they claim work as they become free, or have it dealt out beforehand.
        """
        ...

    def close(self) -> None:
        """Give back what MPI keeps for a comm that was split off; nobody asks it for anything more."""
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
    """Fill the rows of columns (N, ...) that other ranks have worked out, in place.

    places : (n,) rows that this rank has worked out; each row is that of one rank, or the same on several.
    columns : NumPy arrays of the same N, the same on all ranks but for these rows.
    """
    if comm.size == 1:
        return
    # One collective for all columns, byte beside byte: with many ranks, every collective costs its messages.
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

    Of matrix products, and of whatever is rounded where sums end, the last bits depend on how many items are
    worked on together.

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
