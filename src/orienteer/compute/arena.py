"""Device memory in one block that is allocated once and handed out in stack order.

An iteration frees first what it has allocated last.  A stack used in this way does not fragment, so a run
does not fail late because the free memory lies in pieces that are too small.  See Zhang et al., ISBRA 2018,
section 3.
"""

from collections import deque
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from types import TracebackType
from typing import Any

from orienteer.compute.arrays import DeviceName, choose_device, import_cupy
from orienteer.errors import DeviceError

_ALIGNED = 512
# From this size on, a hole that fits well is preferred to memory at the top.
_LARGE = 1 << 20


class Block:
    """Bytes ``first`` to ``first + size`` of an arena, between its neighbours ``below`` and ``above``."""

    __slots__ = ("above", "below", "first", "is_free", "size")

    def __init__(self, first: int, size: int, below: "Block | None") -> None:
        self.first, self.size, self.is_free = first, size, False
        self.below, self.above = below, None  # type: tuple[Block | None, Block | None]


class Arena:
    """Which bytes of a block of memory are in use.

    New memory comes from the top.  Freeing the top block also takes off all free blocks directly beneath it.
    A block that is freed below the top becomes a hole.  A request of the same size gets the latest such hole;
    a large request may also get part of a hole up to twice its size.  If there is no room left at the top,
    neighbouring holes are joined, and the tightest that fits is divided.

    capacity : bytes in all.
    planned_GiB : memory that the plan expected, for the error message.
    high_water : highest top so far, in bytes.

    >>> arena = Arena(4096)
    >>> low, high = arena.allocate(1000), arena.allocate(10)
    >>> low.first, high.first
    (0, 1024)
    >>> arena.free(low)
    >>> arena.top
    1536
    >>> arena.free(high)
    >>> arena.top, arena.high_water
    (0, 1536)
    """

    def __init__(self, capacity: int, planned_GiB: float | None = None) -> None:
        self.capacity = capacity // _ALIGNED * _ALIGNED
        self.high_water = 0
        self._planned_GiB = self.capacity / 2**30 if planned_GiB is None else planned_GiB
        self._top = 0
        self._last: Block | None = None
        self._holes: dict[int, dict[Block, None]] = {}
        # Python may free memory at any moment, in any thread, even within ``allocate``: such blocks wait here
        # until the lists may be changed.
        self._returned: deque[Block] = deque()
        self._lock = Lock()

    @property
    def top(self) -> int:
        """The first byte above everything in use."""
        with self._lock:
            self._take_back()
            return self._top

    @property
    def free_bytes(self) -> int:
        """Bytes above the top and in holes."""
        with self._lock:
            self._take_back()
            holes = sum(size * len(blocks) for size, blocks in self._holes.items())
            return self.capacity - self._top + holes

    def allocate(self, size: int) -> Block:
        """A block of at least ``size`` bytes, which begins at a multiple of 512."""
        size = -(-size // _ALIGNED) * _ALIGNED or _ALIGNED
        with self._lock:
            if self._returned:
                self._take_back()
            if size in self._holes:
                return self._take_hole(size)
            found = self._fit(size, 2 * size) if size >= _LARGE and self._holes else None
            if found is None and self._top + size <= self.capacity:
                return self._push(size)
            if found is None:
                self._join_holes()
                found = self._fit(size, self.capacity)
            if found is None:
                raise self._overflow(size)
            return found

    def free(self, block: Block) -> None:
        """Give a block back."""
        self._returned.append(block)

    def _push(self, size: int) -> Block:
        block = Block(self._top, size, self._last)
        if self._last is not None:
            self._last.above = block
        self._last = block
        self._top += size
        if self._top > self.high_water:
            self.high_water = self._top
        return block

    def _take_back(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            block.is_free = True
            if block is self._last:
                self._pop()
            else:
                self._note_hole(block)

    def _pop(self) -> None:
        """Take off the last block, and all free ones beneath it."""
        last = self._last
        self._last = None if last is None else last.below
        while self._last is not None and self._last.is_free:
            self._forget_hole(self._last)
            self._last = self._last.below
        if self._last is None:
            self._top = 0
        else:
            self._last.above = None
            self._top = self._last.first + self._last.size

    def _note_hole(self, block: Block) -> None:
        self._holes.setdefault(block.size, {})[block] = None

    def _forget_hole(self, block: Block) -> None:
        blocks = self._holes[block.size]
        del blocks[block]
        if not blocks:
            del self._holes[block.size]

    def _take_hole(self, size: int) -> Block:
        """The latest hole of this size."""
        blocks = self._holes[size]
        block, _ = blocks.popitem()
        if not blocks:
            del self._holes[size]
        block.is_free = False
        return block

    def _fit(self, size: int, most: int) -> Block | None:
        """The tightest hole of ``size`` to ``most`` bytes, cut to that size; None: there is none."""
        fitting = (held for held in self._holes if size <= held <= most)
        found = min(fitting, default=None)
        if found is None:
            return None
        block = self._take_hole(found)
        if found > size:
            rest = Block(block.first + size, found - size, block)
            rest.is_free, rest.above = True, block.above
            # A hole is never the last block: there is one above it.
            assert block.above is not None
            block.above.below, block.above, block.size = rest, rest, size
            self._note_hole(rest)
        return block

    def _join_holes(self) -> None:
        """Join holes that touch."""
        block = self._last
        while block is not None:
            below = block.below
            if below is not None and block.is_free and below.is_free:
                self._forget_hole(block)
                self._forget_hole(below)
                below.size += block.size
                below.above = block.above
                assert block.above is not None
                block.above.below = below
                self._note_hole(below)
            block = below

    def _overflow(self, size: int) -> DeviceError:
        GiB = 2**30
        return DeviceError(
            f"{size / GiB:.3g} GiB of device memory were requested, with {self._top / GiB:.3g} of "
            f"{self.capacity / GiB:.3g} GiB taken, but the plan expected {self._planned_GiB:.3g} "
            "GiB in all.",
            "Set a smaller memory_GiB, so that fewer frames are processed at a time.",
        )


def device_memory(
    n_bytes: int, planned_GiB: float | None = None, device: DeviceName = "auto"
) -> "AbstractContextManager[DeviceMemory | None]":
    """One block of device memory for all arrays that are made within ``with``; on the CPU, nothing.

    It can be entered repeatedly.

    n_bytes : size of the block; planned_GiB : memory that the plan expected, for the error when it is full.
    """
    return nullcontext() if choose_device(device) == "cpu" else DeviceMemory(n_bytes, planned_GiB)


class _Lease:
    """Keeps a block of the arena while an array lives in it, and the device memory of the arena itself."""

    __slots__ = ("_block", "_memory")

    def __init__(self, memory: "DeviceMemory", block: Block) -> None:
        self._memory, self._block = memory, block

    def __del__(self) -> None:
        self._memory.arena.free(self._block)


class DeviceMemory(AbstractContextManager["DeviceMemory"]):
    """One block of GPU memory, from which CuPy takes all arrays that this thread makes within ``with``.

    The same block can be entered repeatedly.  Arrays that outlive it keep it alive.  All kernels must run on
    one stream, because freed memory is reused at once.

    n_bytes : size of the block; planned_GiB : memory that the plan expected.
    arena : the allocator, with ``high_water``.
    """

    def __init__(self, n_bytes: int, planned_GiB: float | None = None) -> None:
        cupy: Any = import_cupy()
        self.arena = Arena(n_bytes, planned_GiB)
        # The block replaces CuPy's pool, which therefore returns its free memory.
        self._cuda, self._pool = cupy.cuda, cupy.get_default_memory_pool()
        self._pool.free_all_blocks()
        self._block = cupy.cuda.Memory(self.arena.capacity)
        self._first, self._device = self._block.ptr, self._block.device_id
        self._entered: list[Any] = []

    def allocate(self, size: int) -> Any:
        """Memory of the block, in the form in which CuPy expects it of allocators."""
        if size <= 0:
            return self._pool.malloc(size)
        block = self.arena.allocate(size)
        lease = _Lease(self, block)
        memory = self._cuda.UnownedMemory(self._first + block.first, block.size, lease, self._device)
        return self._cuda.MemoryPointer(memory, 0)

    def __enter__(self) -> "DeviceMemory":
        context = self._cuda.using_allocator(self.allocate)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)
