"""References: all slices of a model, tile after tile, wherever they come from."""

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from orienteer.compute.arrays import Array
from orienteer.compute.prefetch import Prefetched
from orienteer.mtip.references.carriers import HostCarrier, make_carrier
from orienteer.mtip.references.stores import Store
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.trace import Trace, Visit

# Makes tile t: (T, P) or (P, T) float32; its memory may be used again for the next.
Maker: TypeAlias = Callable[[int], Array]


class References(Protocol):
    """Tiles of the slices of one model at a time, for whoever reads them.

    Whether they are made when they are asked for, or kept somewhere, the numbers are the same.
    """

    tiling: Tiling

    def fill(self, make: Maker) -> None:
        """Take a new model.  All ranks that share references call it together, when they need no old ones."""
        ...

    @property
    def order(self) -> list[int]:
        """All tiles, in the order that suits this rank."""
        ...

    def visit(self) -> Iterator[tuple[int, Array]]:
        """Every tile once, in that order, with its slices (T, P) or (P, T) float32.

        Slices are valid until the next are asked for.
        """
        ...

    def tile(self, tile: int) -> Array:
        """The slices of one tile, valid until anything else is asked for."""
        ...

    def close(self) -> None:
        """Give everything back, together with all ranks that share it."""
        ...


class Recomputed:
    """Slices that are made whenever somebody asks."""

    def __init__(self, tiling: Tiling) -> None:
        self.tiling = tiling

    def fill(self, make: Maker) -> None:
        """Remember how slices are made."""
        self._make = make

    @property
    def order(self) -> list[int]:
        """That of rows."""
        return list(range(len(self.tiling)))

    def visit(self) -> Iterator[tuple[int, Array]]:
        """In the order of rows."""
        for tile in self.order:
            yield tile, self._make(tile)

    def tile(self, tile: int) -> Array:
        """Make it."""
        return self._make(tile)

    def close(self) -> None:
        """Nothing is kept."""


class Kept:
    """Slices that were made once, by all ranks together, and are read from a store.

    store : where they are kept.
    ahead : tiles that a thread fetches while the caller works on one; 0: each is fetched when its turn comes.
    on_gpu : tiles are handed out in the memory of the GPU, to which a stream of its own copies them.
    trace : where visits are noted; None: nowhere.
    """

    def __init__(
        self, store: Store, *, ahead: int = 1, on_gpu: bool = False, trace: Trace | None = None
    ) -> None:
        self.tiling, self.store, self.trace, self._ahead = store.tiling, store, trace, ahead
        self._carrier: HostCarrier = make_carrier(store, on_gpu, ahead + 1)

    @property
    def buffer_bytes(self) -> int:
        """Memory of this rank beside its share."""
        return self._carrier.nbytes

    def fill(self, make: Maker) -> None:
        """Make the own share of a new model, and wait for the others."""
        self.store.meet()
        for tile in self.store.own:
            self.store.write(tile, self._carrier.to_store(make(tile)))
        self.store.meet()

    @property
    def order(self) -> list[int]:
        """Own tiles first, and then share by share, so that no two ranks read from the same."""
        return [tile for share in self.store.order for tile in share]

    def visit(self) -> Iterator[tuple[int, Array]]:
        """As :class:`References` says; the next tiles are fetched meanwhile."""
        n_buffers = self._ahead + 1
        # Whatever was handed out before, by a visit that was left or one by one, may still be worked on.
        for which in range(n_buffers):
            self._carrier.note_use(which)
        fetches_ahead = self._ahead and not self._carrier.reads_in_place
        tiles = Prefetched(self._brought(), self._ahead) if fetches_ahead else self._brought()
        for turn, (tile, values) in enumerate(tiles):
            yield tile, values
            self._carrier.note_use(turn % n_buffers)

    def tile(self, tile: int) -> Array:
        """Fetch it, when all work on what was fetched before has been asked for."""
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
