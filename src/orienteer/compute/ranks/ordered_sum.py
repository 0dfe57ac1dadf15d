"""A sum over ranks whose bits do not depend on a library and are the same on all ranks.

Every rank adds one part of the array, in the order of ranks, and all of them collect the parts.
"""

from typing import Protocol

from orienteer.compute.arrays import Array, array_namespace


class Wire(Protocol):
    """The communication between n ranks that a sum needs; arrays stay on the host or on GPUs."""

    @property
    def size(self) -> int: ...

    def swap(self, parts: Array) -> Array:
        """Send part i of (n, m) to rank i; returns the parts from all ranks, (n, m), in their order."""
        ...

    def collect(self, part: Array) -> Array:
        """The parts (m,) of all ranks, (n, m), in their order."""
        ...


def ordered_sum(wire: Wire, x: Array) -> Array:
    """The sum over ranks of arrays of one shape and type."""
    xp, n = array_namespace(x), wire.size
    flat = x.reshape(-1)
    length = -(-flat.size // n)
    parts = flat
    if n * length > flat.size:
        parts = xp.concatenate([flat, xp.zeros(n * length - flat.size, dtype=x.dtype)])
    from_all = wire.swap(parts.reshape(n, length))
    total = from_all[0].copy()
    for other in from_all[1:]:
        total += other
    return wire.collect(total).reshape(-1)[: flat.size].reshape(x.shape)
