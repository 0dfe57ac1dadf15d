"""Work that ranks claim as they become free: an atomic counter in the memory of the first of them.

A claim is one fetch-and-add on the counter, in which the rank whose memory holds it takes no part: between
ranks of one machine it takes microseconds, however busy that rank is.
"""

import atexit
from collections.abc import Iterator
from typing import Any

import numpy as np

# Every loop has its own counter, so that ranks that are ahead disturb no others; then all are reset.
_COUNTERS = 1 << 14
_BYTES = 8


class Claims:
    """Counters of the loops of all ranks of an mpi4py communicator; making them is collective."""

    def __init__(self, mpi: Any) -> None:
        from mpi4py import MPI

        self._mpi, self._sum, self._replace = mpi, MPI.SUM, MPI.REPLACE
        own_bytes = _COUNTERS * _BYTES if mpi.Get_rank() == 0 else 0
        self._window: Any = MPI.Win.Allocate(own_bytes, _BYTES, comm=mpi)
        self._window.Lock_all()
        # MPI reports windows that are left at its end; freeing them is collective, too.
        atexit.register(self.free)
        self._loop = 0
        self._zero()

    def _zero(self) -> None:
        self._mpi.Barrier()
        if self._mpi.Get_rank() == 0:
            self._window.Accumulate(np.zeros(_COUNTERS, dtype=np.int64), 0, op=self._replace)
            self._window.Flush(0)
        self._mpi.Barrier()

    def numbers(self, n: int) -> Iterator[int]:
        """The numbers below n that this rank claims, in rising order; all ranks must run this loop."""
        if self._loop == _COUNTERS:
            self._loop = 0
            self._zero()
        place, self._loop = self._loop, self._loop + 1
        one, found = np.ones(1, dtype=np.int64), np.empty(1, dtype=np.int64)
        while True:
            self._window.Fetch_and_op(one, found, 0, place, self._sum)
            self._window.Flush(0)
            if found[0] >= n:
                return
            yield int(found[0])

    def free(self) -> None:
        """Free the counters; collective."""
        from mpi4py import MPI

        atexit.unregister(self.free)
        if MPI.Is_finalized():
            return
        self._window.Unlock_all()
        self._window.Free()
