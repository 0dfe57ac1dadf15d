"""Carry tiles from a store to where slices are scored: in place, through buffers, or to the GPU."""

from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, import_cupy, is_on_gpu, to_numpy
from orienteer.mtip.references.stores import Store


class HostCarrier:
    """Reads tiles in place if the store allows it; copies all others into ``n_buffers`` buffers.

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
        """The slices of a tile, copied to buffer ``which`` if they cannot be read in place."""
        return self._tiling.read(tile, self._slot(tile, which))

    def note_use(self, which: int) -> None:
        """Note that all work on buffer ``which`` has been launched."""

    def to_store(self, values: Array) -> Array:
        """Slices in memory that the store can copy from."""
        return values

    def close(self) -> None:
        """Release the buffers."""
        self._slots = []

    def _slot(self, tile: int, which: int) -> Array:
        """The slot of a tile in the store, or buffer ``which`` with a copy of it."""
        slot: Array = self._store.in_place(tile)
        if slot is None:
            slot = self._slots[which]
            self._store.fetch(tile, slot)
        return slot

    def _empty(self, nbytes: int) -> Array:
        return np.empty(nbytes, dtype=np.uint8)


class CudaCarrier(HostCarrier):
    """Copies tiles to the GPU, on a CUDA stream of its own, while kernels work on other tiles.

    The thread that calls ``bring`` waits for the copy; kernels on other tiles do not.
    """

    def __init__(self, store: Store, n_buffers: int) -> None:
        super().__init__(store, n_buffers)
        self.reads_in_place = False
        cupy: Any = import_cupy()
        self._works = cupy.cuda.get_current_stream()
        # A blocking stream would wait for the default stream, where all kernels run.
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
        """Note that kernels that read the buffer have been launched; it is refilled only after them."""
        self._used[which] = self._works.record()

    def to_store(self, values: Array) -> Array:
        """Slices copied to host memory."""
        return to_numpy(values)

    def close(self) -> None:
        """Wait for the last copy, then release the buffers."""
        self._copies.synchronize()
        super().close()
        self._device = []

    def _empty(self, nbytes: int) -> Array:
        cuda: Any = import_cupy().cuda  # type: ignore[union-attr]
        # Page-locked memory: only this can be copied while kernels run.
        pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
        return np.frombuffer(pointer, dtype=np.uint8, count=nbytes)


def make_carrier(store: Store, on_gpu: bool, n_buffers: int) -> HostCarrier:
    """The carrier from a store to host memory or to the GPU."""
    slot = store.in_place(store.own[0]) if store.own else None
    if on_gpu and not (slot is not None and is_on_gpu(slot)):
        return CudaCarrier(store, n_buffers)
    return HostCarrier(store, n_buffers)
