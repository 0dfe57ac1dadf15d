"""Memory of the device: here it is memory of the host, which allocators hand out as on a card."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_POISON = 0xFF  # NaN as a float of any size: what is read before it was written shows


class Memory:
    """``size`` bytes of the device, at ``ptr``."""

    def __init__(self, size: int) -> None:
        self._bytes = np.full(size, _POISON, np.uint8)
        self.size, self.device_id, self.ptr = size, 0, self._bytes.ctypes.data


class UnownedMemory:
    """Bytes that belong to ``owner``, which is kept alive."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    """A place ``offset`` bytes into memory."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        return int(self.mem.ptr + self.offset)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> "MemoryPointer":
        return MemoryPointer(self.mem, self.offset + offset)


class MemoryPool:
    """Keeps nothing for later: everything free is free at once."""

    def malloc(self, size: int) -> MemoryPointer:
        return MemoryPointer(Memory(max(int(size), 0)), 0)

    def free_all_blocks(self, stream: Any = None) -> None:
        pass

    def free_bytes(self) -> int:
        return 0

    def used_bytes(self) -> int:
        return 0

    def total_bytes(self) -> int:
        return 0


POOL = MemoryPool()
_allocator: ContextVar[Callable[[int], MemoryPointer] | None] = ContextVar("allocator", default=None)


@contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Arrays that this thread makes within ``with`` take their memory from the allocator."""
    token = _allocator.set(allocator)
    try:
        yield
    finally:
        _allocator.reset(token)


def has_allocator() -> bool:
    return _allocator.get() is not None


class _Bytes:
    """Keeps memory as long as an array of NumPy looks at it."""

    def __init__(self, memory: MemoryPointer, nbytes: int) -> None:
        self.memory = memory
        self.__array_interface__ = {
            "data": (memory.ptr, False), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def new_bytes(nbytes: int) -> np.ndarray[Any, Any]:
    """Poisoned memory from the allocator in use."""
    allocate = _allocator.get() or POOL.malloc
    memory = allocate(nbytes)
    if nbytes == 0:
        return np.empty(0, np.uint8)
    found = np.asarray(_Bytes(memory, nbytes))
    found.fill(_POISON)
    return found


def empty(shape: Any, dtype: Any = float, order: str = "C") -> np.ndarray[Any, Any]:
    """An array of NumPy in memory of the device."""
    dtype = np.dtype(dtype)
    shape = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else (int(shape),)
    if min(shape, default=0) < 0:
        raise ValueError("Negative dimensions are not allowed")
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.ndarray(shape, dtype, new_bytes(nbytes) if nbytes else None, order=order or "C")  # type: ignore[arg-type]


class PinnedMemory:
    """Page-locked memory of the host."""

    def __init__(self, size: int, flags: int = 0) -> None:
        self.size = size


class PinnedMemoryPointer(bytearray):
    """Its bytes, which begin as poison."""

    def __init__(self, mem: PinnedMemory, offset: int) -> None:
        super().__init__(bytes([_POISON]) * (mem.size - offset))
        self.mem = mem

    @property
    def ptr(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self))
