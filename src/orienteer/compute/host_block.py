"""Arrays that wait in host memory and are copied to the device one turn before they are needed."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, choose_device, import_cupy, namespace_of_device

# Every array begins at a multiple of this many bytes, as the memory of a GPU does.
_ALIGNED = 512


class HostBlock:
    """Arrays side by side in one block of host memory, which reaches the device in one copy.

    For a GPU the block is page-locked, so that it can be copied while kernels run.

    memory : (nbytes,) uint8.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]], device: DeviceName = "auto") -> None:
        self._parts = []
        first = 0
        for array in arrays:
            self._parts.append((slice(first, first + array.nbytes), array.dtype, array.shape))
            first += -(-array.nbytes // _ALIGNED) * _ALIGNED
        self.memory = _host_memory(first, device)
        for mine, array in zip(self.arrays(self.memory), arrays, strict=True):
            mine[...] = array

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return len(self.memory)

    def arrays(self, memory: Array) -> list[Array]:
        """The arrays as parts of ``memory`` (nbytes or more,) uint8: the block, or a copy on any device."""
        return [memory[part].view(dtype).reshape(shape) for part, dtype, shape in self._parts]


def copied_ahead(blocks: Sequence[HostBlock], device: DeviceName = "auto") -> Iterator[list[Array]]:
    """The arrays of every block on the device; the next block is copied while the caller uses this one.

    There are two buffers on the device: arrays of one turn are overwritten after the next turn has begun.
    """
    lane = _CudaLane() if choose_device(device) == "cuda" else _Lane()
    size = max((block.nbytes for block in blocks), default=0)
    buffers = [namespace_of_device(device).empty(size, dtype=np.uint8) for _ in blocks[:2]]
    lane.begin(len(buffers))
    try:
        for turn, block in enumerate(blocks):
            if turn == 0:
                lane.copy(block, buffers[0], 0)
            if turn + 1 < len(blocks):
                other = (turn + 1) % 2
                lane.copy(blocks[turn + 1], buffers[other], other)
            lane.await_copy(turn % 2)
            yield block.arrays(buffers[turn % 2])
            lane.note_use(turn % 2)
    finally:
        lane.finish()


class _Lane:
    """Copies within host memory, each done at once."""

    def begin(self, n_buffers: int) -> None:
        pass

    def copy(self, block: HostBlock, buffer: Array, which: int) -> None:
        buffer[: block.nbytes] = block.memory

    def await_copy(self, which: int) -> None:
        pass

    def note_use(self, which: int) -> None:
        pass

    def finish(self) -> None:
        pass


class _CudaLane(_Lane):
    """Copies on a stream of their own.  Events keep the order; the host never waits.

    A buffer is filled after all kernels that use it have run, and used after it has been filled.
    """

    def __init__(self) -> None:
        cuda: Any = import_cupy().cuda  # type: ignore[union-attr]
        self._works = cuda.get_current_stream()
        # A blocking stream would wait for the default stream, on which everything else runs.
        self._copies = cuda.Stream(non_blocking=True)
        self._copied: dict[int, Any] = {}

    def begin(self, n_buffers: int) -> None:
        # Memory that is new here may still be in use by kernels that were launched before.
        now = self._works.record()
        self._used = dict.fromkeys(range(n_buffers), now)

    def copy(self, block: HostBlock, buffer: Array, which: int) -> None:
        self._copies.wait_event(self._used[which])
        buffer[: block.nbytes].set(block.memory, stream=self._copies)
        self._copied[which] = self._copies.record()

    def await_copy(self, which: int) -> None:
        self._works.wait_event(self._copied[which])

    def note_use(self, which: int) -> None:
        self._used[which] = self._works.record()

    def finish(self) -> None:
        # The buffers are then freed for the working stream: no copy into them may come later.
        for copied in self._copied.values():
            self._works.wait_event(copied)


def _host_memory(nbytes: int, device: DeviceName) -> NDArray[np.uint8]:
    if choose_device(device) == "cpu" or nbytes == 0:
        return np.empty(nbytes, dtype=np.uint8)
    cuda: Any = import_cupy().cuda  # type: ignore[union-attr]
    # Not from CuPy's pool, which rounds sizes up to powers of two.
    pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
    return np.frombuffer(pointer, dtype=np.uint8, count=nbytes)
