"""Streams, events and memory of a card on which all work is done at once."""

import time
from contextlib import AbstractContextManager
from typing import Any

from cupy._memory import (
    Memory,
    MemoryPointer,
    MemoryPool,
    PinnedMemory,
    PinnedMemoryPointer,
    UnownedMemory,
    using_allocator,
)  # fmt: skip
from cupy.cuda import device, runtime
from cupy.cuda.device import Device

__all__ = [
    "Device", "Event", "Memory", "MemoryPointer", "MemoryPool", "PinnedMemory", "PinnedMemoryPointer",
    "Stream", "UnownedMemory", "device", "get_current_stream", "get_elapsed_time", "runtime",
    "using_allocator",
]  # fmt: skip


class Event:
    """A moment of a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.seconds: float | None = None

    def record(self, stream: "Stream | None" = None) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        pass

    @property
    def done(self) -> bool:
        return True


class Stream(AbstractContextManager["Stream"]):
    """A queue of work that is always empty."""

    null: "Stream"

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        *,
        priority: int | None = None,
    ) -> None:
        self.ptr = 0 if null else id(self)

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        if not isinstance(event, Event):
            raise TypeError(f"a stream waits for an Event, not for {type(event)}")

    def synchronize(self) -> None:
        pass

    @property
    def done(self) -> bool:
        return True

    def use(self) -> "Stream":
        _used.append(self)
        return self

    def __enter__(self) -> "Stream":
        return self.use()

    def __exit__(self, *error: Any) -> None:
        _used.pop()


Stream.null = Stream(null=True)
_used = [Stream.null]


def get_current_stream(device_id: int = -1) -> Stream:
    return _used[-1]


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events."""
    if start_event.seconds is None or end_event.seconds is None:
        raise runtime.CUDARuntimeError("cudaErrorInvalidResourceHandle: an event was not recorded")
    return (end_event.seconds - start_event.seconds) * 1e3
