"""Orienteer's own HDF5 files of patterns, which docs/reference/file-format.md describes.

Every dataset carries checksums, and so does the structure of the file; nothing is of variable length.
"""

from __future__ import annotations

import json
import math
import time
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from orienteer.compute.hdf5_file import LiveFile, open_hdf5_for_reading
from orienteer.compute.hdf5_reading import get_dataset, get_group, read_array, read_numbers, read_text
from orienteer.compute.reading import reading
from orienteer.errors import FileError
from orienteer.source.base import FileSource
from orienteer.source.orienteer_hdf5_writer import (
    FORMAT_MARK,
    FORMAT_NAME,
    FORMAT_VERSION,
    OrienteerHdf5Writer,
)
from orienteer.source.patterns import Patterns, SparsePhotons

__all__ = ["EXTENSIONS", "FORMAT_NAME", "OrienteerHdf5Source", "Writer", "open_file", "recognise"]

EXTENSIONS = (".h5", ".hdf5")
Writer = OrienteerHdf5Writer
# A reader may meet a block at the moment in which a live writer replaces it; it then looks again.
_LIVE_ATTEMPTS, _LIVE_PAUSE_S = 5, 0.05


def recognise(path: Path, head: bytes, hdf5: h5py.File | None) -> bool:
    """Whether this is a file of patterns written by Orienteer."""
    return hdf5 is not None and read_text(hdf5, "format") == FORMAT_MARK


def open_file(path: Path) -> OrienteerHdf5Source:
    """The patterns of an Orienteer file; no frames are read."""
    return OrienteerHdf5Source(path)


class OrienteerHdf5Source(FileSource):
    """Patterns in Orienteer's own HDF5 file, complete or still being written.

    Only frames that the writer has committed are there; :meth:`refresh` looks for more.
    """

    format = FORMAT_NAME
    n_entries: int = 0

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(path)
        self._file_path = Path(path)
        self._file: h5py.File | None = None
        self.refresh()

    @property
    def is_live(self) -> bool:
        """Whether a writer had the file open, or was killed, when it was last looked at."""
        return isinstance(self._file, LiveFile)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def refresh(self) -> int:
        """Look at the file again; how many frames it has now."""
        attached = self.detector
        for attempt in range(_LIVE_ATTEMPTS):
            try:
                with reading(self._file_path):
                    self.close()
                    self._file = open_hdf5_for_reading(self._file_path)
                    self._look(self._file)
                break
            except FileError:
                live = self.is_live
                self.close()
                if not live or attempt + 1 == _LIVE_ATTEMPTS:
                    raise
                time.sleep(_LIVE_PAUSE_S)
        if attached is not None:
            self.detector = attached
        return self.n_frames

    def _look(self, file: h5py.File) -> None:
        path = self._file_path
        version = int(read_numbers(file, "format_version", "iu"))
        if not 1 <= version <= FORMAT_VERSION:
            raise FileError(
                path,
                f"has format version {version}; this Orienteer reads up to {FORMAT_VERSION}.",
                "Update it.",
            )
        self.frame_shape = tuple(read_numbers(file, "frame_shape", "iu", (None,)).tolist())
        if not self.frame_shape or min(self.frame_shape) < 1 or math.prod(self.frame_shape) >= 2**31:
            raise FileError(path, f"declares frames of shape {self.frame_shape}, which cannot be.")
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
        self.column_names = tuple(names)
        self.metadata = json.loads(get_dataset(file, "metadata", "S", (1,))[0])
        self.metadata["creator"] = read_text(file, "creator")
        if "detector" in file:
            from orienteer.detector.hdf5 import read_detector

            self.attach(read_detector(get_group(file, "detector")))
        self.n_frames = rows

    def _read_range(self, first: int, last: int) -> Patterns:
        for attempt in range(_LIVE_ATTEMPTS):
            if self._file is None:
                raise FileError(self._file_path, "has been closed.", "Open it again.")
            try:
                return self._read_once(slice(first, last))
            except OSError:
                if not self.is_live or attempt + 1 == _LIVE_ATTEMPTS:
                    raise
                time.sleep(_LIVE_PAUSE_S)
                self.refresh()
        raise FileError(self._file_path, "could not be read.")

    def _read_once(self, rows: slice) -> Patterns:
        frames = self._read_photons(rows) if self.is_sparse else self._read_dense(rows)
        columns = {name: _read_column(column, rows) for name, column in self._columns.items()}
        return Patterns(frames, read_array(self._event_id, rows), columns)

    def _read_dense(self, rows: slice) -> Any:
        return read_array(self._frames, rows).reshape(rows.stop - rows.start, self.n_pixels)

    def _read_photons(self, rows: slice) -> SparsePhotons:
        start = np.zeros(rows.stop - rows.start + 1, dtype=np.int64)
        start[1:] = self._end[rows]
        start[0] = self._end[rows.start - 1] if rows.start else 0
        if start[0] < 0 or start[-1] > self.n_entries or np.any(np.diff(start) < 0):
            raise FileError(
                self._file_path, f"has photon lists out of order in frames {rows.start} to {rows.stop}."
            )
        entries = slice(int(start[0]), int(start[-1]))
        pixel, count = read_array(self._pixel, entries), read_array(self._count, entries)
        return SparsePhotons(start - start[0], pixel, count, self.n_pixels)


def _read_column(dataset: h5py.Dataset, rows: slice) -> Any:
    values = read_array(dataset, rows)
    if "characters" in dataset.attrs:
        width = max(1, int(read_numbers(dataset, "characters", "iu")))
        return np.char.decode(values, "utf-8").astype(f"U{width}")
    return values
