"""Files of a run, written by a thread during the next step, so that GPU and cores need not wait for the disk.

Nothing else changes: files are written one after the other, each gets its name when it is whole, and a kill
loses only the file that was being written.  An error is raised in the main thread as soon as it looks, at the
latest before the next write or at the end of the run.
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

# Larger states are not copied: the plan of a run reserves no memory for that.
_MOST_BYTES = 1 << 28


class SavingBeside:
    """Writes files in a thread, one group at a time.

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
        """Wait for the last group, then begin to write this one, file after file."""
        self.wait()
        # Not a daemon: a program that ends waits until its files are written.
        self._thread = threading.Thread(target=self._do, args=(writes,), name="saving")
        self._thread.start()

    def wait(self) -> None:
        """Wait until everything is written; raise an error of the thread, once."""
        self.end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def end(self) -> None:
        """Wait until everything is written, but leave an error to the next ``wait`` or ``check``."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def check(self) -> None:
        """Raise an error of the thread, if it has ended already."""
        if not self.is_busy:
            self.wait()

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """If an error leaves the block, wait first until the files are written."""
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
    """Whether the arrays of a state are small enough to be copied."""
    return sum(int(getattr(value, "nbytes", 0)) for value in state.values()) <= _MOST_BYTES


def copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a state, which the next step cannot change."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()}


def volume_of_its_own(volume: Volume) -> Volume:
    """A copy of a volume in the memory of the host, which the next step cannot change."""
    return replace(volume, values=np.array(to_numpy(volume.values)))
