"""Base of the writers of all HDF5 formats: one new file that is filled, then closed or discarded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from orienteer.compute.hdf5_writing import NewHdf5File, signals_wait
from orienteer.source.writer import PatternWriter


class Hdf5PatternWriter(PatternWriter):
    """A writer of one HDF5 file, which the subclass creates as ``_file`` in ``_start``."""

    _file: Any = None

    def _finish(self) -> None:
        self._file.close()

    def _discard(self) -> None:
        file, self._file = self._file, None
        if isinstance(file, NewHdf5File):
            file.discard()
        elif file is not None:
            file.close()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with signals_wait():
            try:
                yield
            finally:
                # Replaces an error inside the block, which is then only a consequence.
                if isinstance(self._file, NewHdf5File):
                    self._file.raise_failure()
