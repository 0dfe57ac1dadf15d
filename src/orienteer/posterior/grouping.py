"""Groups the entries of lists by a key."""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu


def group_by(keys: Array, n_groups: int) -> tuple[Array, Array]:
    """Positions of equal keys: group g is ``order[start[g]:start[g + 1]]``, ascending.

    keys : (N,) whole numbers from 0 to n_groups - 1.
    Returns start (n_groups + 1,) int64 and order (N,) int64.

    >>> group_by(np.array([2, 0, 2]), 3)
    (array([0, 1, 1, 3]), array([1, 0, 2]))
    """
    xp = array_namespace(keys)
    n = len(keys)
    if is_on_gpu(keys):
        order = xp.sort(keys.astype(np.int64) * max(n, 1) + xp.arange(n, dtype=np.int64)) % max(n, 1)
        return starts_of(xp.bincount(keys, minlength=n_groups)), order
    from orienteer.posterior._grouping_numba import counting_sort

    start, order = np.zeros(n_groups + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    counting_sort(np.ascontiguousarray(keys), start, order)
    return start, order


def starts_of(counts: Array) -> Array:
    """Where groups of these sizes begin, and their sum at the end: (G,) to (G + 1,) int64.

    >>> starts_of(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    xp = array_namespace(counts)
    return xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(counts, dtype=np.int64)])


def owner_of(start: Array, n_entries: int | None = None) -> Array:
    """The group of every entry: start (G + 1,) to (start[-1],) int64; groups may be empty.

    n_entries : start[-1], if known; otherwise it is read from the GPU, which waits for it.

    >>> owner_of(np.array([0, 2, 2, 3]))
    array([0, 0, 2])
    """
    xp = array_namespace(start)
    if not is_on_gpu(start):
        return np.repeat(np.arange(len(start) - 1), np.diff(start))
    n_entries = int(start[-1]) if n_entries is None else n_entries
    return xp.searchsorted(start[1:], xp.arange(n_entries), side="right").astype(np.int64)
