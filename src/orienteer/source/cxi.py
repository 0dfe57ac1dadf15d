"""CXI files of hits as XFEL groups write them: frames, masks, geometry, event ids and columns.

``cxi_layout.py``, ``cxi_masks.py`` and ``cxi_geometry.py`` describe where each of these is looked for.  Masks
of single frames come as the column ``frame_mask`` (N, P) of levels of ``PixelUse``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_file import LiveFile, open_hdf5_for_reading
from orienteer.compute.hdf5_filters import load_filters
from orienteer.compute.hdf5_reading import get_dataset, read_array, read_numbers
from orienteer.compute.reading import reading
from orienteer.detector.panel import LARGEST_N_PIXELS
from orienteer.detector.polarisation import check_polarisation
from orienteer.errors import FileError
from orienteer.source.cxi_geometry import find_detector
from orienteer.source.cxi_layout import (
    find_columns,
    find_event_ids,
    find_frames,
    find_wavelength,
    rows_of_growing,
)
from orienteer.source.cxi_masks import find_masks, levels_of
from orienteer.source.cxi_writer import FORMAT_NAME, METADATA, POLARISATION, CxiWriter
from orienteer.source.file_source import FileSource
from orienteer.source.finite_source import Result
from orienteer.source.hdf5_growing import read_column, read_metadata
from orienteer.source.patterns import FRAME_MASK

__all__ = ["EXTENSIONS", "FORMAT_NAME", "CxiSource", "Writer", "open_file", "recognise"]

EXTENSIONS = (".cxi",)
Writer = CxiWriter
# A reader may meet a block just while a live writer replaces it; it then tries again.
_LIVE_ATTEMPTS, _LIVE_PAUSE_S = 10, 0.03


def recognise(path: Path, head: bytes, hdf5: Any | None) -> bool:
    """Whether an HDF5 file is laid out as CXI: it has the group ``entry_1``."""
    return hdf5 is not None and isinstance(hdf5.get("entry_1"), h5py.Group)


def open_file(path: Path) -> CxiSource:
    """The frames of a CXI file."""
    return CxiSource(path)


class CxiSource(FileSource):
    """Frames of a CXI file; opening reads geometry and file-wide mask, but no frames."""

    format = FORMAT_NAME

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        load_filters()
        self._file = open_hdf5_for_reading(path)
        try:
            self._look(path)
        except BaseException:
            self._file.close()
            raise

    @property
    def is_live(self) -> bool:
        """Whether, at the last look, the file was open in a writer or left by one that was killed."""
        return isinstance(self._file, LiveFile)

    def refresh(self) -> int:
        """Look at the file again; returns how many complete frames it has now."""
        for attempt in range(_LIVE_ATTEMPTS):
            try:
                with reading(self.path):
                    fresh = CxiSource(self.path)
                self.__dict__.update({**fresh.__dict__, "given": self.given})
                self.apply_given()
                break
            except FileError:
                if not self.is_live:
                    raise
                if attempt + 1 < _LIVE_ATTEMPTS:
                    time.sleep(_LIVE_PAUSE_S)
        return self.n_frames

    def _attempt(self, read: Callable[[], Result]) -> Result:
        with reading(self.path):
            for _ in range(_LIVE_ATTEMPTS - 1):
                try:
                    return read()
                except OSError:
                    if not self.is_live:
                        raise
                    time.sleep(_LIVE_PAUSE_S)
                    self.refresh()
            return read()

    def _look(self, path: Path) -> None:
        rows = rows_of_growing(self._file) if self.is_live else None
        self._frames = find_frames(path, self._file, rows)
        shape = tuple(int(n) for n in self._frames.shape)
        if rows is not None:
            shape = (rows, *shape[1:])
        self._is_one_image = len(shape) == 2
        self.n_frames, self.frame_shape = (1, shape) if self._is_one_image else (shape[0], shape[1:])
        if self.n_pixels > LARGEST_N_PIXELS:
            raise FileError(path, f"declares frames of {self.frame_shape}, larger than any detector.")
        self.bytes_per_value = self._frames.dtype.itemsize
        self.mask, self._frame_mask = find_masks(path, self._file, self.n_frames, self.frame_shape)
        self._columns = find_columns(path, self._file, self.n_frames)
        self._event_ids = find_event_ids(self._file, self.n_frames)
        names = list(self._columns)
        self._wavelength_A = None
        if "wavelength_A" not in self._columns:
            self._wavelength_A = find_wavelength(self._file, self.n_frames)
            names += ["wavelength_A"] if self._wavelength_A is not None else []
        if FRAME_MASK in self._columns:
            self._frame_mask = None
        if self._frame_mask is not None:
            names.append(FRAME_MASK)
            self.bytes_per_value += self._frame_mask.dtype.itemsize + 1
        self.stored_columns = tuple(names)
        if METADATA in self._file:
            self.metadata = read_metadata(self._file, METADATA)
        if POLARISATION in self._file:
            stored = read_array(get_dataset(self._file, POLARISATION, "S", ()))
            self.polarisation = check_polarisation(stored.item().decode())
        self.attach(find_detector(path, self._file, self.frame_shape))
        # The writer stores a flat list of pixels as one row, with the true shape in this attribute.
        if "frame_shape" in self._frames.attrs:
            declared = tuple(read_numbers(self._frames, "frame_shape", "iu", (None,)).tolist())
            if math.prod(declared) == self.n_pixels and all(n > 0 for n in declared):
                self.frame_shape = declared

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_event_ids(self, rows: slice) -> Any:
        return None if self._event_ids is None else self._event_ids(rows)

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Any]:
        columns = {
            name: read_column(dataset, rows) for name, dataset in self._columns.items() if name in names
        }
        if self._wavelength_A is not None and "wavelength_A" in names:
            columns["wavelength_A"] = self._wavelength_A(rows)
        if self._frame_mask is not None and FRAME_MASK in names:
            columns[FRAME_MASK] = self._levels(rows)
        return columns

    def _levels(self, rows: slice) -> NDArray[np.uint8]:
        return levels_of(read_array(self._frame_mask, rows).reshape(-1, self.n_pixels))

    def _read_frames(self, rows: slice) -> Any:
        # A single image has no axis of frames; an empty range of frames must still be empty.
        stored = read_array(self._frames, slice(0, len(self._frames)) if self._is_one_image else rows)
        return stored.reshape(-1, self.n_pixels)[: rows.stop - rows.start]
