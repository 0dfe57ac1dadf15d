"""Files of a run, written by a thread while the next step is done: card and cores need not wait for a disk.

Nothing else changes: files are written one after the other, each takes its name as a whole, and a kill loses
no more than what was being written.  What went wrong is told to whoever waits, at the latest by the next
writing or by the end of the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.compute.arrays import to_numpy

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume

# Copies of more than this would need memory that nobody has planned.
_MOST_BYTES = 1 << 28


class SavingBeside:
    """One writing at a time, in a thread of its own.

    >>> beside, written = SavingBeside(), []
    >>> beside.begin([lambda: written.append("checkpoint")])
    >>> beside.wait()
    >>> written
    ['checkpoint']
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being written."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, writes: Sequence[Callable[[], None]]) -> None:
        """Write one after the other, when what was begun before has ended."""
        self.wait()
        # No daemon: a program that ends lets what it has begun to write come to its end.
        self._thread = threading.Thread(target=self._do, args=(writes,), name="saving")
        self._thread.start()

    def wait(self) -> None:
        """Wait until everything is written; what went wrong is raised, once."""
        self.end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def end(self) -> None:
        """Wait, and leave what went wrong to the next who asks."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def check(self) -> None:
        """Raise what went wrong, if that is known already."""
        if not self.is_busy:
            self.wait()

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """Whoever leaves the block by an error leaves no file half written."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def _do(self, writes: Sequence[Callable[[], None]]) -> None:
        try:
            for write in writes:
                write()
        except BaseException as error:
            self._error = error


def can_be_copied(state: Mapping[str, Any]) -> bool:
    """Whether copies of the arrays of a state are small enough to be made without a plan."""
    return sum(int(getattr(value, "nbytes", 0)) for value in state.values()) <= _MOST_BYTES


def copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state whose arrays stay as they are, whatever the next step does with its own."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()}


def volume_of_its_own(volume: Volume) -> Volume:
    """The same volume in memory that nobody else writes to, in that of the host."""
    return replace(volume, values=np.array(to_numpy(volume.values)))
