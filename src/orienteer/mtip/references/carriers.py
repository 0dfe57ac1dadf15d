"""From a store to where slices are scored: in place, through buffers, or on to the GPU."""

from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, import_cupy, is_on_gpu, to_numpy
from orienteer.mtip.references.stores import Store


class HostCarrier:
    """Tiles where the store has them; those that cannot be read there come through ``n_buffers`` buffers.

    reads_in_place : whether no tile needs a buffer.
    nbytes : memory of the buffers.
    """

    def __init__(self, store: Store, n_buffers: int) -> None:
        self._store, self._tiling = store, store.tiling
        self.reads_in_place = all(store.in_place(share[0]) is not None for share in store.order if share)
        n_slots = 0 if self.reads_in_place else n_buffers
        self._slots = [self._empty(self._tiling.slot_bytes) for _ in range(n_slots)]
        self.nbytes: int = n_slots * self._tiling.slot_bytes

    def bring(self, tile: int, which: int) -> Array:
        """The slices of a tile, in buffer ``which`` where they need one."""
        return self._tiling.read(tile, self._slot(tile, which))

    def note_use(self, which: int) -> None:
        """All work on buffer ``which`` has been asked for."""

    def to_store(self, values: Array) -> Array:
        """Slices where the store can take them."""
        return values

    def close(self) -> None:
        """Forget the buffers."""
        self._slots = []

    def _slot(self, tile: int, which: int) -> Array:
        """Where the store has a tile, or buffer ``which`` with a copy of it."""
        slot: Array = self._store.in_place(tile)
        if slot is None:
            slot = self._slots[which]
            self._store.fetch(tile, slot)
        return slot

    def _empty(self, nbytes: int) -> Array:
        return np.empty(nbytes, dtype=np.uint8)


class CudaCarrier(HostCarrier):
    """Tiles on the GPU, to which they are copied on a stream of their own while kernels work on others.

    The thread that brings a tile waits for its copy; whoever works on the GPU does not.
    """

    def __init__(self, store: Store, n_buffers: int) -> None:
        super().__init__(store, n_buffers)
        self.reads_in_place = False
        cupy: Any = import_cupy()
        self._works = cupy.cuda.get_current_stream()
        # A blocking stream would wait for the default stream, on which everything else runs.
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._used = [self._works.record() for _ in range(n_buffers)]
        size = self._tiling.slot_bytes
        self._device = [cupy.empty(size, dtype=np.uint8) for _ in range(n_buffers)]

    def bring(self, tile: int, which: int) -> Array:
        """The slices of a tile in the memory of the GPU."""
        slot, target = self._slot(tile, which), self._device[which]
        self._copies.wait_event(self._used[which])
        target.set(slot, stream=self._copies)
        self._copies.synchronize()
        return self._tiling.read(tile, target)

    def note_use(self, which: int) -> None:
        """Kernels that read the buffer are on their way; it is filled again after them."""
        self._used[which] = self._works.record()

    def to_store(self, values: Array) -> Array:
        """In host memory."""
        return to_numpy(values)

    def close(self) -> None:
        """Forget the buffers when nothing is copied any more."""
        self._copies.synchronize()
        super().close()
        self._device = []

    def _empty(self, nbytes: int) -> Array:
        cuda: Any = import_cupy().cuda  # type: ignore[union-attr]
        # Locked in memory, without which it could not be copied while kernels run.
        pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
        return np.frombuffer(pointer, dtype=np.uint8, count=nbytes)


def make_carrier(store: Store, on_gpu: bool, n_buffers: int) -> HostCarrier:
    """The carrier from a store to host memory or to the GPU."""
    slot = store.in_place(store.own[0]) if store.own else None
    if on_gpu and not (slot is not None and is_on_gpu(slot)):
        return CudaCarrier(store, n_buffers)
    return HostCarrier(store, n_buffers)
