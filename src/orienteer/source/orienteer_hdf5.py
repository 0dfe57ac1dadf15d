"""Orienteer's own HDF5 files of patterns, which docs/reference/file-format.md describes.

Every dataset carries checksums, and so does the structure of the file; nothing is of variable length.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from orienteer.compute.hdf5_file import LiveFile, open_hdf5_for_reading
from orienteer.compute.hdf5_reading import get_dataset, get_group, read_array, read_numbers, read_text
from orienteer.compute.reading import reading
from orienteer.detector.masks import check_mask
from orienteer.detector.polarisation import check_polarisation
from orienteer.errors import FileError
from orienteer.source.file_source import FileSource
from orienteer.source.finite_source import Result
from orienteer.source.hdf5_growing import read_column, read_metadata
from orienteer.source.hdf5_turns import reader_turn
from orienteer.source.orienteer_hdf5_writer import (
    FORMAT_MARK,
    FORMAT_NAME,
    FORMAT_VERSION,
    OrienteerHdf5Writer,
)
from orienteer.source.patterns import SparsePhotons

__all__ = ["EXTENSIONS", "FORMAT_NAME", "OrienteerHdf5Source", "Writer", "open_file", "recognise"]

EXTENSIONS = (".h5", ".hdf5")
Writer = OrienteerHdf5Writer
# A reader in its turn needs to look again only once, at the file as it is now.  On a disk without locks there
# are no turns, and it may also meet a block just while a live writer replaces it.
_LIVE_ATTEMPTS, _LIVE_PAUSE_S = 20, 0.03


def recognise(path: Path, head: bytes, hdf5: h5py.File | None) -> bool:
    """Whether this is a file of patterns written by Orienteer."""
    return hdf5 is not None and read_text(hdf5, "format") == FORMAT_MARK


def open_file(path: Path) -> OrienteerHdf5Source:
    """The patterns of an Orienteer file; no frames are read."""
    return OrienteerHdf5Source(path)


class OrienteerHdf5Source(FileSource):
    """Patterns in Orienteer's own HDF5 file, complete or still being written.

    Only frames that the writer has committed are visible; :meth:`refresh` looks for more.
    """

    format = FORMAT_NAME
    n_entries: int = 0

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(path)
        self._file: h5py.File | None = None
        self.refresh()

    @property
    def is_live(self) -> bool:
        """Whether, at the last look, the file was open in a writer or left by one that was killed."""
        return isinstance(self._file, LiveFile)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def refresh(self) -> int:
        """Look at the file again; returns how many frames it has now."""
        with reader_turn(self.path):
            for attempt in range(_LIVE_ATTEMPTS):
                try:
                    with reading(self.path):
                        self._file = None  # not closed: a source with another detector may share it
                        self._file = open_hdf5_for_reading(self.path)
                        self._look(self._file)
                        self.apply_given()
                    break
                except FileError:
                    live = self.is_live
                    # Opened just now, so that nobody shares it.  Left open, it would be what HDF5 finds where
                    # the same file is written once more.
                    self.close()
                    if not live or attempt + 1 == _LIVE_ATTEMPTS:
                        raise
                    time.sleep(_LIVE_PAUSE_S)
        return self.n_frames

    def _look(self, file: h5py.File) -> None:
        path = self.path
        self.detector = self.mask = self.polarisation = None
        version = int(read_numbers(file, "format_version", "iu"))
        if not 1 <= version <= FORMAT_VERSION:
            raise FileError(
                path,
                f"has format version {version}; this Orienteer reads up to {FORMAT_VERSION}.",
                "Update Orienteer.",
            )
        self.frame_shape = tuple(read_numbers(file, "frame_shape", "iu", (None,)).tolist())
        if not self.frame_shape or min(self.frame_shape) < 1 or math.prod(self.frame_shape) >= 2**31:
            raise FileError(path, f"declares frames of shape {self.frame_shape}, which is impossible.")
        rows = int(get_dataset(file, "committed", "i", (1,))[0])
        if rows < 0:
            raise FileError(path, f"declares {rows} frames.")
        self._event_id = get_dataset(file, "event_id", "u", (None,), rows)
        self.is_sparse = "photons" in file
        if self.is_sparse:
            photons = get_group(file, "photons")
            self._end = get_dataset(photons, "end", "i", (None,), rows)
            n_entries = int(self._end[rows - 1]) if rows else 0
            self._pixel = get_dataset(photons, "pixel", "iu", (None,), n_entries)
            self._count = get_dataset(photons, "count", "iu", (None,), n_entries)
            self.n_entries = n_entries
        else:
            self._frames = get_dataset(file, "frames", "iuf", (None, *self.frame_shape), rows)
            self.bytes_per_value = self._frames.dtype.itemsize
        columns = get_group(file, "columns")
        names = list(columns)
        self._columns = {name: get_dataset(columns, name, "biufcS", rows=rows) for name in names}
        self.stored_columns = tuple(names)
        self.metadata = read_metadata(file, "metadata")
        self.metadata["creator"] = read_text(file, "creator")
        polarisation = read_text(file, "polarisation")
        self.polarisation = check_polarisation(polarisation) if polarisation else None
        if "mask" in file:
            levels = read_array(get_dataset(file, "mask", "u", self.frame_shape))
            self.mask = check_mask(levels, self.frame_shape)
        if "detector" in file:
            from orienteer.detector.hdf5 import read_detector

            self.attach(read_detector(get_group(file, "detector")))
        self.n_frames = rows

    def _attempt(self, read: Callable[[], Result]) -> Result:
        with reading(self.path), reader_turn(self.path):
            for attempt in range(_LIVE_ATTEMPTS):
                if not self._file:
                    raise FileError(self.path, "has been closed.", "Open it again.")
                try:
                    return read()
                except OSError:
                    if not self.is_live or attempt + 1 == _LIVE_ATTEMPTS:
                        raise
                    if attempt > 0:
                        time.sleep(_LIVE_PAUSE_S)
                    self.refresh()
        raise FileError(self.path, "could not be read.")

    def _read_frames(self, rows: slice) -> Any:
        return self._read_photons(rows) if self.is_sparse else self._read_dense(rows)

    def _read_event_ids(self, rows: slice) -> Any:
        return read_array(self._event_id, rows)

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Any]:
        return {name: read_column(self._columns[name], rows, bytes_are_text=False) for name in names}

    def _read_dense(self, rows: slice) -> Any:
        return read_array(self._frames, rows).reshape(rows.stop - rows.start, self.n_pixels)

    def _read_photons(self, rows: slice) -> SparsePhotons:
        start = np.zeros(rows.stop - rows.start + 1, dtype=np.int64)
        start[1:] = self._end[rows]
        start[0] = self._end[rows.start - 1] if rows.start else 0
        if start[0] < 0 or start[-1] > self.n_entries or np.any(np.diff(start) < 0):
            raise FileError(
                self.path, f"has photon lists out of order in frames {rows.start} to {rows.stop}."
            )
        entries = slice(int(start[0]), int(start[-1]))
        pixel, count = read_array(self._pixel, entries), read_array(self._count, entries)
        return SparsePhotons(start - start[0], pixel, count, self.n_pixels)
