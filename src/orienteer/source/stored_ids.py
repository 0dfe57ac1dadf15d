"""Look up, in bounded memory, event ids that a growing file already holds."""

from __future__ import annotations

from collections.abc import Iterator

import h5py
import numpy as np
from numpy.typing import NDArray

_BLOCK = 2**18


def largest_stored_id(stored: h5py.Dataset, n_rows: int) -> int:
    """The largest of the first ``n_rows`` ids; -1 if there are none."""
    return max((int(block.max()) for block in _blocks(stored, n_rows)), default=-1)


def first_stored_id(stored: h5py.Dataset, n_rows: int, ids: NDArray[np.uint64]) -> int | None:
    """One of ``ids`` that is among the first ``n_rows`` stored ids; None if there is none."""
    for block in _blocks(stored, n_rows):
        found = block[np.isin(block, ids)]
        if len(found):
            return int(found[0])
    return None


def first_double(ids: NDArray[np.uint64]) -> int | None:
    """An id that occurs twice in the list; None if all are different."""
    ordered = np.sort(ids)
    (twice,) = np.nonzero(ordered[1:] == ordered[:-1])
    return int(ordered[twice[0]]) if len(twice) else None


def _blocks(stored: h5py.Dataset, n_rows: int) -> Iterator[NDArray[np.uint64]]:
    for first in range(0, n_rows, _BLOCK):
        yield stored[first : min(first + _BLOCK, n_rows)]
