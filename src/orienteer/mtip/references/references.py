"""References: all slices of a model, tile by tile, made on demand or read from where they are kept."""

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from orienteer.compute.arrays import Array
from orienteer.compute.prefetch import Prefetched
from orienteer.mtip.references.carriers import HostCarrier, make_carrier
from orienteer.mtip.references.stores import Store
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.trace import Trace, Visit

# Makes tile t: (T, P) or (P, T) float32; its memory may be reused for the next tile.
Maker: TypeAlias = Callable[[int], Array]


class References(Protocol):
    """The slices of one model at a time, read tile by tile.

    The numbers are the same whether slices are made on demand or kept somewhere.
    """

    tiling: Tiling

    def fill(self, make: Maker) -> None:
        """Take a new model.  All ranks that share references call this together; old slices are lost."""
        ...

    @property
    def order(self) -> list[int]:
        """All tiles, in the order that suits this rank."""
        ...

    def visit(self) -> Iterator[tuple[int, Array]]:
        """Every tile once, in the order of ``order``, with its slices (T, P) or (P, T) float32.

        Slices are valid until the next tile is requested.
        """
        ...

    def tile(self, tile: int) -> Array:
        """The slices of one tile, valid until the next request."""
        ...

    def close(self) -> None:
        """Release everything; all ranks that share it call this together."""
        ...


class Recomputed:
    """Slices that are made anew at every request."""

    def __init__(self, tiling: Tiling) -> None:
        self.tiling = tiling

    def fill(self, make: Maker) -> None:
        """Remember how slices are made."""
        self._make = make

    @property
    def order(self) -> list[int]:
        """Tiles in the order of rows."""
        return list(range(len(self.tiling)))

    def visit(self) -> Iterator[tuple[int, Array]]:
        """All tiles in the order of rows."""
        for tile in self.order:
            yield tile, self._make(tile)

    def tile(self, tile: int) -> Array:
        """Make one tile."""
        return self._make(tile)

    def close(self) -> None:
        """Nothing is kept."""


class Kept:
    """Slices that all ranks have made once, together, and read from a store.

    store : where they are kept.
    ahead : tiles that a thread fetches while the caller works on one; 0: each is fetched when requested.
    on_gpu : tiles are copied to the memory of the GPU, on a CUDA stream of their own.
    trace : records visits; None: they are not recorded.
    """

    def __init__(
        self, store: Store, *, ahead: int = 1, on_gpu: bool = False, trace: Trace | None = None
    ) -> None:
        self.tiling, self.store, self.trace, self._ahead = store.tiling, store, trace, ahead
        self._carrier: HostCarrier = make_carrier(store, on_gpu, ahead + 1)

    @property
    def buffer_bytes(self) -> int:
        """Memory of this rank for buffers, in addition to its share of the tiles."""
        return self._carrier.nbytes

    def fill(self, make: Maker) -> None:
        """Make this rank's share of the slices of a new model, and wait for the other ranks."""
        self.store.meet()
        for tile in self.store.own:
            self.store.write(tile, self._carrier.to_store(make(tile)))
        self.store.meet()

    @property
    def order(self) -> list[int]:
        """Own tiles first, then share by share, such that no two ranks read the same share in one step."""
        return [tile for share in self.store.order for tile in share]

    def visit(self) -> Iterator[tuple[int, Array]]:
        """As in :class:`References`; a thread fetches the next tiles meanwhile."""
        n_buffers = self._ahead + 1
        # Kernels may still read buffers that an unfinished visit or ``tile`` returned before.
        for which in range(n_buffers):
            self._carrier.note_use(which)
        fetches_ahead = self._ahead and not self._carrier.reads_in_place
        tiles = Prefetched(self._brought(), self._ahead) if fetches_ahead else self._brought()
        for turn, (tile, values) in enumerate(tiles):
            yield tile, values
            self._carrier.note_use(turn % n_buffers)

    def tile(self, tile: int) -> Array:
        """Fetch one tile; all work on tiles returned before must have been launched."""
        self._carrier.note_use(0)
        return self._carrier.bring(tile, 0)

    def close(self) -> None:
        """Close the store."""
        self._carrier.close()
        self.store.close()

    def _brought(self) -> Iterator[tuple[int, Array]]:
        turn = 0
        for step, share in enumerate(self.store.order):
            for tile in share:
                start = time.monotonic()
                values = self._carrier.bring(tile, turn % (self._ahead + 1))
                if self.trace is not None:
                    copied = self.store.in_place(tile) is None
                    holder = self.store.holder(tile)
                    self.trace.visits.append(
                        Visit(self.store.rank, step, holder, tile, start, time.monotonic(), copied)
                    )
                yield tile, values
                turn += 1
