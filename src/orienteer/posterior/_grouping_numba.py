"""CPU kernel of ``grouping.py``: a counting sort."""

from numba import njit


@njit(nogil=True, cache=True)
def counting_sort(keys, start, order):  # type: ignore[no-untyped-def]
    """Positions of equal keys side by side in ``order`` (N,), group g from start[g] on; start must be 0."""
    for i in range(keys.size):
        start[keys[i] + 1] += 1
    for g in range(1, start.size):
        start[g] += start[g - 1]
    place = start[:-1].copy()
    for i in range(keys.size):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
