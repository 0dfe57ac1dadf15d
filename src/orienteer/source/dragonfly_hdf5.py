"""Dragonfly's sparse HDF5 files: lists of lit pixels as variable-length arrays, one row per frame.

``num_pix`` int32 (1,); ``place_ones``, ``place_multi`` and ``count_multi`` are (N,) of variable-length int32.
Like the binary ``.emc``, it cannot store event ids, columns, frame shape and geometry.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_file import open_hdf5_for_reading
from orienteer.compute.hdf5_reading import check_stored, get_dataset
from orienteer.compute.hdf5_writing import NewHdf5File
from orienteer.compute.reading import COPY_AGAIN
from orienteer.detector.panel import LARGEST_N_PIXELS
from orienteer.errors import FileError, OrienteerError
from orienteer.source.dragonfly_emc import LOST, join_photon_lists
from orienteer.source.file_source import FileSource
from orienteer.source.hdf5_varying import read_varying
from orienteer.source.hdf5_writer import Hdf5PatternWriter
from orienteer.source.patterns import Patterns

FORMAT_NAME = "Dragonfly HDF5"
EXTENSIONS = (".emc.h5",)
LISTS = ("place_ones", "place_multi", "count_multi")
_CHUNK = 1024


def recognise(path: Path, head: bytes, hdf5: Any | None) -> bool:
    """Whether an HDF5 file has Dragonfly's photon lists."""
    return hdf5 is not None and "num_pix" in hdf5 and "place_ones" in hdf5


def open_file(path: Path) -> DragonflyHdf5Source:
    """The frames of a sparse Dragonfly HDF5 file."""
    return DragonflyHdf5Source(path)


class DragonflyHdf5Source(FileSource):
    """Photon lists of a Dragonfly HDF5 file, read row by row."""

    format = FORMAT_NAME
    is_sparse = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = open_hdf5_for_reading(path)
        try:
            n_pixels = int(np.ravel(get_dataset(self._file, "num_pix", "iu")[()])[0])
            if not 1 <= n_pixels <= LARGEST_N_PIXELS:
                raise FileError(path, f"declares {n_pixels} pixels.", COPY_AGAIN)
            self.frame_shape = (n_pixels,)
            self._lists = [self._photon_list(path, name) for name in LISTS]
            self.n_frames = len(self._lists[0])
            for name, rows in zip(LISTS, self._lists, strict=True):
                if rows.shape != (self.n_frames,):
                    raise FileError(
                        path, f"'{name}' has shape {rows.shape}, but 'place_ones' has {self.n_frames} frames."
                    )
        except BaseException:
            self._file.close()
            raise

    def _photon_list(self, path: Path, name: str) -> Any:
        rows = self._file.get(name)
        base = h5py.check_vlen_dtype(rows.dtype) if isinstance(rows, h5py.Dataset) else None
        if base is None or not isinstance(base, np.dtype) or base.kind not in "iu" or rows.ndim != 1:
            raise FileError(path, f"has no list of variable-length whole numbers '{name}'.", COPY_AGAIN)
        check_stored(rows)
        return rows

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_frames(self, rows: slice) -> Any:
        (ones, place_ones), (multi, place_multi), (counts, count_multi) = (
            read_varying(photon_list, rows) for photon_list in self._lists
        )
        if not np.array_equal(multi, counts):
            frame = rows.start + int(np.argmax(multi != counts))
            raise OrienteerError(f"frame {frame} lists different numbers of places and counts.")
        return join_photon_lists(ones, place_ones, multi, place_multi, count_multi, self.n_pixels, rows.start)


class Writer(Hdf5PatternWriter):
    """Writes Dragonfly's sparse HDF5; frames must be photon counts."""

    format: ClassVar[str] = FORMAT_NAME
    keeps_mask: ClassVar[bool] = False
    lost_on_write: ClassVar[tuple[str, ...]] = LOST

    def _start(self, temporary: Path, first: Patterns) -> None:
        self._file = NewHdf5File(temporary)
        self._file["num_pix"] = np.array([first.n_pixels], dtype="<i4")
        kind = h5py.vlen_dtype(np.dtype("<i4"))
        for name in LISTS:
            self._file.create_dataset(name, (0,), kind, maxshape=(None,), chunks=(_CHUNK,))

    def _write(self, patterns: Patterns) -> None:
        if not patterns.is_sparse and patterns.frames.dtype.kind == "f":
            raise OrienteerError(
                f"photon lists hold counts, but these frames are {patterns.frames.dtype} signal.",
                "Write .emc, .cxi or .h5, which hold signal, or turn it into counts first.",
            )
        photons = patterns.sparse()
        several = photons.count > 1
        # Entries with several photons before entry e, so that each frame's share of a list is a slice.
        n_several = np.concatenate([[0], np.cumsum(several)])
        multi = n_several[photons.start]
        ones = photons.start - multi
        lists = (
            (ones, photons.pixel[~several]),
            (multi, photons.pixel[several]),
            (multi, photons.count[several]),
        )
        for name, (start, values) in zip(LISTS, lists, strict=True):
            pieces = np.split(values.astype("<i4"), start[1:-1])
            _append_rows(self._file[name], self.n_written, pieces)


def _append_rows(dataset: h5py.Dataset, first: int, pieces: list[NDArray[Any]]) -> None:
    """Add variable-length rows.  (h5py's high-level interface takes rows of equal length for a 2D array.)"""
    rows = np.empty(len(pieces), dtype=object)
    for d, piece in enumerate(pieces):
        rows[d] = piece
    dataset.resize((first + len(rows),))
    space = dataset.id.get_space()
    space.select_hyperslab((first,), (len(rows),))
    dataset.id.write(h5py.h5s.create_simple((len(rows),)), space, rows, h5py.h5t.py_create(dataset.dtype))
