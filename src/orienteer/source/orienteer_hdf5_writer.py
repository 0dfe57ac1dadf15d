"""Writing Orienteer's own HDF5 files: new ones in one stroke, or growing in place for readers to follow."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

import orienteer
from orienteer.compute.atomic import atomic_path
from orienteer.errors import FileError, OrienteerError
from orienteer.source.hdf5_recovery import clear_marks_of_dead_writer, only_writer
from orienteer.source.patterns import Patterns, concatenate
from orienteer.source.writer import PatternWriter

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

FORMAT_NAME = "Orienteer"
FORMAT_MARK = "orienteer patterns"
FORMAT_VERSION = 1
# Version 1.10 of the file format: readable by every HDF5 since 2016, with checksums over all metadata and
# readers beside a writer.
_LIBRARY_VERSION = ("v110", "v110")
_CHUNK_BYTES = 2**18
_BUFFER_BYTES = 8 * 2**20
_CHECKED = {"fletcher32": True}
_PACKED = {"fletcher32": True, "shuffle": True, "compression": "gzip", "compression_opts": 1}


class OrienteerHdf5Writer(PatternWriter):
    """Writes Orienteer's own files.

    By default the file takes its place when the block ends.  With ``live`` it appears with its first commit
    and grows in place while others read it; with ``append`` frames go behind those of an existing file (or
    start a new one), readable meanwhile too.  A process killed while writing in place leaves a file that
    opens with every committed frame, and that can be appended to again.

    Parameters
    ----------
    storage : "sparse" or "dense"; by default that of the first batch.
    append, live : write in place, see above.
    commit_every_s : longest time in seconds that appended frames wait before readers see them.
    """

    format: ClassVar[str] = FORMAT_NAME

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        detector: Detector | None = None,
        frame_shape: tuple[int, ...] | None = None,
        metadata: Mapping[str, Any] | None = None,
        storage: Literal["sparse", "dense"] | None = None,
        append: bool = False,
        live: bool = False,
        commit_every_s: float = 1.0,
    ) -> None:
        super().__init__(path, detector=detector, frame_shape=frame_shape, metadata=metadata)
        self._storage = storage
        self._append = append
        self._in_place = append or live
        self._commit_every_s = commit_every_s
        self._file: Any = None
        self._held: list[Patterns] = []
        self._held_bytes = 0
        self._n_frames = 0
        self._n_entries = 0
        self._committed_at_s = time.monotonic()

    @property
    def n_committed(self) -> int:
        """Frames that a reader sees now, and that survive the death of this process."""
        return 0 if self._file is None else int(self._file["committed"][0])

    def commit(self) -> None:
        """Make all frames appended so far visible to readers and safe against the death of this process."""
        if self._file is None:
            return
        self._write_held()
        self._file.flush()  # the frames first, and only then the number that vouches for them
        self._file["committed"][0] = self._n_frames
        self._file.flush()
        self._committed_at_s = time.monotonic()

    # The steps that PatternWriter asks for.

    def _place(self, stack: ExitStack) -> Path:
        if not self._in_place:
            return super()._place(stack)
        if self.path.is_dir():
            raise FileError(self.path, "is a directory, not a file to write.", "Give the path of a file.")
        if not self.path.parent.is_dir():
            raise FileError(self.path, "cannot be written: its folder does not exist.")
        stack.enter_context(only_writer(self.path))
        if self._append and self.path.exists():
            self._continue()
        return self.path

    def _start(self, temporary: Path, first: Patterns) -> None:
        if self._in_place:
            # The empty file is complete before anybody can see it.
            with atomic_path(self.path) as unseen:
                self._create(unseen, first)
            self._file = _open_in_place(self.path)
        else:
            self._file = self._create(temporary, first, keep_open=True)

    def _write(self, patterns: Patterns) -> None:
        stored = self._as_stored(patterns)
        self._held.append(stored)
        self._held_bytes += _n_bytes(stored)
        if self._held_bytes >= _BUFFER_BYTES:
            self._write_held()
        if self._in_place and time.monotonic() - self._committed_at_s >= self._commit_every_s:
            self.commit()

    def _finish(self) -> None:
        self.commit()
        self._discard()

    def _discard(self) -> None:
        self._held = []
        if self._file is not None:
            self._file.close()
            self._file = None

    # What is in the file.

    def _create(self, path: Path, first: Patterns, keep_open: bool = False) -> h5py.File | None:
        file = h5py.File(path, "w", libver=_LIBRARY_VERSION, locking=False)
        try:
            shape = self.frame_shape or (first.n_pixels,)
            file.attrs["format"] = np.bytes_(FORMAT_MARK)  # of fixed length, so that its checksum covers it
            file.attrs["format_version"] = FORMAT_VERSION
            file.attrs["creator"] = np.bytes_(f"orienteer {orienteer.__version__}")
            file.attrs["frame_shape"] = np.array(shape, dtype=np.int64)
            file.create_dataset(
                "committed", data=np.zeros(1, np.int64), maxshape=(None,), chunks=(1,), **_CHECKED
            )
            _create_rows(file, "event_id", np.dtype(np.uint64), ())
            if first.is_sparse if self._storage is None else self._storage == "sparse":
                _create_rows(file, "photons/end", np.dtype(np.int64), ())
                _create_rows(file, "photons/pixel", np.dtype(np.int32), ())
                _create_rows(file, "photons/count", np.dtype(np.int32), ())
            else:
                dtype = np.dtype(np.int32) if first.is_sparse else first.frames.dtype
                _create_rows(file, "frames", dtype, shape)
            file.create_group("columns")
            for name, column in first.columns.items():
                self._create_column(file, name, column)
            self._write_metadata(file)
            if self.detector is not None:
                from orienteer.detector.hdf5 import write_detector

                write_detector(file.create_group("detector"), self.detector)
        except BaseException:
            file.close()
            raise
        if keep_open:
            return file
        file.close()
        return None

    def _create_column(self, file: h5py.File, name: str, column: NDArray[Any]) -> None:
        if not name or "/" in name or name.startswith("."):
            raise OrienteerError(f"{self.path}: '{name}' cannot be the name of a column.")
        if column.dtype.kind == "U":
            width = column.dtype.itemsize // 4
            encoded = np.dtype(f"S{max(1, 4 * width)}")  # UTF-8 takes up to four bytes a character
            _create_rows(file, f"columns/{name}", encoded, column.shape[1:]).attrs["characters"] = width
        elif column.dtype.kind in "biufcS":
            _create_rows(file, f"columns/{name}", column.dtype, column.shape[1:])
        else:
            raise OrienteerError(f"{self.path}: column '{name}' of type {column.dtype} cannot be stored.")

    def _write_metadata(self, file: h5py.File) -> None:
        try:
            text = json.dumps(self.metadata).encode()
        except TypeError as error:
            raise OrienteerError(f"{self.path}: metadata must be text and numbers ({error}).") from error
        dtype = h5py.string_dtype("utf-8", len(text))
        file.create_dataset("metadata", data=np.array([text], dtype=dtype), chunks=(1,), **_CHECKED)

    def _continue(self) -> None:
        """Take up an existing file where its last commit left it."""
        from orienteer.source.opening import recognise
        from orienteer.source.orienteer_hdf5 import OrienteerHdf5Source

        if recognise(self.path) != FORMAT_NAME:
            raise FileError(self.path, f"is a {recognise(self.path)} file, to which frames cannot be added.")
        with OrienteerHdf5Source(self.path) as existing:
            if self.frame_shape is not None and math.prod(self.frame_shape) != existing.n_pixels:
                raise FileError(
                    self.path, f"holds frames of shape {existing.frame_shape}, not of {self.frame_shape}."
                )
            self.frame_shape = existing.frame_shape
            self.detector = existing.detector or self.detector
            self._n_frames = self.n_written = len(existing)
            self._n_entries = existing.n_entries
        clear_marks_of_dead_writer(self.path)
        self._file = _open_in_place(self.path)
        self._started = True

    def _as_stored(self, patterns: Patterns) -> Patterns:
        """The batch in the storage, columns and types of the file, or an error that names what differs."""
        file = self._file
        names = set(file["columns"])
        if set(patterns.columns) != names:
            differing = ", ".join(sorted(names ^ set(patterns.columns)))
            raise OrienteerError(f"{self.path}: the batch and the file differ in the columns {differing}.")
        columns = {
            name: self._column_as_stored(file["columns"][name], patterns.columns[name]) for name in names
        }
        if "photons" in file:
            return Patterns(patterns.sparse(), patterns.event_id, columns)
        frames = patterns.dense()
        wanted = file["frames"].dtype
        if frames.dtype != wanted:
            if not np.can_cast(frames.dtype, wanted, "safe"):
                raise OrienteerError(
                    f"{self.path}: frames of {frames.dtype} do not fit in a file of {wanted}."
                )
            frames = frames.astype(wanted)
        return Patterns(frames, patterns.event_id, columns)

    def _column_as_stored(self, dataset: h5py.Dataset, column: NDArray[Any]) -> NDArray[Any]:
        wanted = (
            np.dtype(f"U{dataset.attrs['characters']}") if "characters" in dataset.attrs else dataset.dtype
        )
        if column.shape[1:] != dataset.shape[1:] or not np.can_cast(column.dtype, wanted, "safe"):
            raise OrienteerError(
                f"{self.path}: column '{dataset.name.rpartition('/')[2]}' is {column.dtype} of shape "
                f"{column.shape[1:]} in this batch, but {wanted} of shape {dataset.shape[1:]} in the file."
            )
        if wanted.kind == "U":
            return np.char.encode(column, "utf-8").astype(dataset.dtype)
        return column.astype(wanted, copy=False)

    def _write_held(self) -> None:
        if not self._held or self._file is None:
            return
        patterns = concatenate(self._held)
        self._held, self._held_bytes = [], 0
        first, last = self._n_frames, self._n_frames + len(patterns)
        if patterns.is_sparse:
            photons = patterns.sparse()
            entries = self._n_entries
            _write_rows(self._file["photons/pixel"], entries, photons.pixel)
            _write_rows(self._file["photons/count"], entries, photons.count)
            _write_rows(self._file["photons/end"], first, photons.start[1:] + entries)
            self._n_entries += len(photons.pixel)
        else:
            _write_rows(self._file["frames"], first, patterns.frames.reshape(-1, *(self.frame_shape or ())))
        for name, column in patterns.columns.items():
            _write_rows(self._file["columns"][name], first, column)
        _write_rows(self._file["event_id"], first, patterns.event_id)
        self._n_frames = last


def _open_in_place(path: Path) -> h5py.File:
    """Open for writing beside readers, in one step: a file killed at any moment stays readable."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_file_locking(False, True)
    flags = h5py.h5f.ACC_RDWR | h5py.h5f.ACC_SWMR_WRITE
    try:
        return h5py.File(h5py.h5f.open(os.fsencode(path), flags, fapl=access))
    except OSError as error:
        if "already open" not in str(error):
            raise
        hint = "Close the source that reads it in this program, then append."
        raise FileError(path, "is open in this program, and cannot be written too.", hint) from error


def _create_rows(file: h5py.File, name: str, dtype: Any, shape: tuple[int, ...]) -> h5py.Dataset:
    """An empty table of rows that can grow; chunks hold about a quarter of a MiB."""
    row_bytes = max(1, np.dtype(dtype).itemsize * math.prod(shape))
    rows = max(1, _CHUNK_BYTES // row_bytes)
    return file.create_dataset(
        name, (0, *shape), dtype, maxshape=(None, *shape), chunks=(rows, *shape), **_PACKED
    )


def _write_rows(dataset: h5py.Dataset, first: int, values: NDArray[Any]) -> None:
    last = first + len(values)
    if len(dataset) < last:
        dataset.resize(last, axis=0)
    if len(values):
        dataset[first:last] = values


def _n_bytes(patterns: Patterns) -> int:
    frames = patterns.frames
    own = (
        frames.pixel.nbytes + frames.count.nbytes + frames.start.nbytes
        if patterns.is_sparse
        else frames.nbytes
    )
    return int(own + 8 * len(patterns) + sum(column.nbytes for column in patterns.columns.values()))
