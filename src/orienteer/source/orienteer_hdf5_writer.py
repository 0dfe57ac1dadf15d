"""Writing Orienteer's own HDF5 files: new ones as a whole, or growing in place while readers follow."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

import orienteer
from orienteer.compute.atomic import atomic_path
from orienteer.compute.hdf5_room import ReservedRoom
from orienteer.compute.hdf5_writing import NewHdf5File
from orienteer.compute.reading import writing
from orienteer.errors import FileError
from orienteer.source.hdf5_growing import (
    PACKED,
    as_stored,
    columns_as_stored,
    create_column,
    create_rows,
    write_metadata,
    write_rows,
)
from orienteer.source.hdf5_recovery import clear_marks_of_dead_writer, only_writer
from orienteer.source.hdf5_turns import WriterTurns
from orienteer.source.hdf5_writer import Hdf5PatternWriter
from orienteer.source.patterns import Patterns, SparsePhotons, concatenate
from orienteer.source.stored_ids import first_double, first_stored_id, largest_stored_id

FORMAT_NAME = "Orienteer"
FORMAT_MARK = "orienteer patterns"
FORMAT_VERSION = 1
# Version 1.10 of the file format: every HDF5 library since 2016 reads it, all metadata have checksums, and
# others may read while one writes.
_LIBRARY_VERSION = ("v110", "v110")
_BUFFER_BYTES = 8 * 2**20


class OrienteerHdf5Writer(Hdf5PatternWriter):
    """Writes Orienteer's own files.

    By default the file takes its place when the block ends.  With ``live`` it appears with its first batch
    and grows in place while others read it.  With ``append`` frames go after those of an existing file (or
    start a new one), also while others read it.  A process killed while writing in place leaves a file that
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
        storage: Literal["sparse", "dense"] | None = None,
        append: bool = False,
        live: bool = False,
        commit_every_s: float = 1.0,
        **common: Any,
    ) -> None:
        super().__init__(path, **common)
        self._storage = storage
        self._append = append
        self._in_place = append or live
        self._commit_every_s = commit_every_s
        self._room: ReservedRoom | None = None
        self._turns: WriterTurns | None = None
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
        with writing(self.path), self._changing():
            self._write_held()
            self._file.flush()  # the frames first, and only then the number that declares them complete
            self._file["committed"][0] = self._n_frames
            self._file.flush()
            if self._room is not None:
                self._room.release()
        self._committed_at_s = time.monotonic()

    # The steps that PatternWriter calls.

    def _place(self, stack: ExitStack) -> Path:
        if not self._in_place:
            return super()._place(stack)
        if self.path.is_dir():
            raise FileError(self.path, "is a directory, not a file to write.", "Give the path of a file.")
        if not self.path.parent.is_dir():
            raise FileError(
                self.path,
                "cannot be written: its folder does not exist.",
                "Give another path." if self.path.parent.exists() else f"Try: mkdir -p {self.path.parent}",
            )
        stack.enter_context(only_writer(self.path))
        self._turns = WriterTurns(self.path)
        stack.callback(self._turns.close)
        if self._append and self.path.exists():
            self._continue()
        return self.path

    def _start(self, temporary: Path, first: Patterns) -> None:
        if self._in_place:
            # The empty file is complete before anybody can see it.
            with atomic_path(self.path) as unseen:
                self._create(unseen, first)
            self._open_in_place()
        else:
            self._file = self._create(temporary, first, keep_open=True)

    def _write(self, patterns: Patterns) -> None:
        self._refuse_known_ids(patterns.event_id)
        stored = self._as_stored(patterns)
        self._held.append(stored)
        self._held_bytes += _n_bytes(stored)
        if self._held_bytes >= _BUFFER_BYTES:
            self._write_held()
        if self._in_place and time.monotonic() - self._committed_at_s >= self._commit_every_s:
            self.commit()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with super()._changing(), nullcontext() if self._turns is None else self._turns.take():
            yield

    def _finish(self) -> None:
        self.commit()
        super()._finish()

    def _discard(self) -> None:
        self._held = []
        if self._file and self._room is not None:
            self._file.flush()
            self._room.release()
        super()._discard()

    # What is in the file.

    def _create(self, path: Path, first: Patterns, keep_open: bool = False) -> h5py.File | None:
        file = NewHdf5File(path, libver=_LIBRARY_VERSION)
        try:
            shape = self.frame_shape or (first.n_pixels,)
            file.attrs["format"] = np.bytes_(FORMAT_MARK)  # of fixed length, so that its checksum covers it
            file.attrs["format_version"] = FORMAT_VERSION
            file.attrs["creator"] = np.bytes_(f"orienteer {orienteer.__version__}")
            file.attrs["frame_shape"] = np.array(shape, dtype=np.int64)
            file.create_dataset(
                "committed", data=np.zeros(1, np.int64), maxshape=(None,), chunks=(1,), fletcher32=True
            )
            create_rows(file, "event_id", np.uint64)
            if first.is_sparse if self._storage is None else self._storage == "sparse":
                create_rows(file, "photons/end", np.int64)
                create_rows(file, "photons/pixel", np.int32)
                create_rows(file, "photons/count", np.int32)
            else:
                dtype = np.dtype(np.int32) if first.is_sparse else first.frames.dtype
                create_rows(file, "frames", dtype, shape)
            file.create_group("columns")
            for name, column in first.columns.items():
                create_column(file["columns"], name, column)
            write_metadata(file, "metadata", self.metadata)
            if self.polarisation is not None:
                file.attrs["polarisation"] = np.bytes_(self.polarisation)
            if self.mask is not None and self.detector is None:
                file.create_dataset("mask", data=self.mask.reshape(shape), chunks=shape, **PACKED)
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

    def _continue(self) -> None:
        """Continue an existing file after its last commit."""
        from orienteer.source.opening import recognise
        from orienteer.source.orienteer_hdf5 import OrienteerHdf5Source

        if recognise(self.path) != FORMAT_NAME:
            raise FileError(
                self.path,
                f"is a {recognise(self.path)} file, to which frames cannot be added.",
                "Convert it to an Orienteer file first: orienteer convert",
            )
        with OrienteerHdf5Source(self.path) as existing:
            if self.frame_shape is not None and math.prod(self.frame_shape) != existing.n_pixels:
                raise FileError(
                    self.path,
                    f"holds frames of shape {existing.frame_shape}, not of {self.frame_shape}.",
                    "Give another file.",
                )
            self.frame_shape = existing.frame_shape
            self.detector = existing.detector or self.detector
            self._n_frames = self.n_written = len(existing)
            self._n_entries = existing.n_entries
            self.mask = existing.mask if existing.detector is None else existing.detector.mask
        with self._changing():
            clear_marks_of_dead_writer(self.path)
            self._open_in_place()
        self.next_id = largest_stored_id(self._file["event_id"], self._n_frames) + 1
        self._started = True

    def _open_in_place(self) -> None:
        self._file = _open_in_place(self.path)
        self._room = ReservedRoom(self._file)

    def _refuse_known_ids(self, ids: NDArray[np.uint64]) -> None:
        known = first_double(ids)
        if known is None and len(ids) and int(ids.min()) < self.next_id:
            held = [patterns.event_id for patterns in self._held]
            known = first_double(np.concatenate([ids, *held]))
            if known is None:
                known = first_stored_id(self._file["event_id"], self._n_frames, ids)
        if known is not None:
            raise FileError(
                self.path,
                f"already has a frame with event id {known}; ids must be unique in a file.",
                "Give the frames other ids, or none to have them numbered (convert --renumber).",
            )

    def _as_stored(self, patterns: Patterns) -> Patterns:
        """The batch in the storage, columns and types of the file, or an error that names what differs."""
        file = self._file
        columns = columns_as_stored(file["columns"], patterns.columns)
        if "photons" in file:
            frames: Any = patterns.frames
            if not isinstance(frames, SparsePhotons):
                # The batch has been checked: only masked pixels can have negative counts.
                frames = Patterns(np.maximum(frames, 0), columns=patterns.columns).sparse()
        else:
            shape = (len(patterns), *(self.frame_shape or ()))
            frames = as_stored(file["frames"], patterns.dense().reshape(shape)).reshape(len(patterns), -1)
        return Patterns(frames, patterns.event_id, columns)

    def _write_held(self) -> None:
        if not self._held or self._file is None:
            return
        if self._room is not None:
            self._room.reserve(self._held_bytes)
        patterns = concatenate(self._held)
        self._held, self._held_bytes = [], 0
        first, last = self._n_frames, self._n_frames + len(patterns)
        if isinstance(patterns.frames, SparsePhotons):
            photons, entries = patterns.frames, self._n_entries
            write_rows(self._file["photons/pixel"], entries, photons.pixel)
            write_rows(self._file["photons/count"], entries, photons.count)
            write_rows(self._file["photons/end"], first, photons.start[1:] + entries)
            self._n_entries += len(photons.pixel)
        else:
            write_rows(self._file["frames"], first, patterns.frames.reshape(-1, *(self.frame_shape or ())))
        for name, column in patterns.columns.items():
            write_rows(self._file["columns"][name], first, column)
        write_rows(self._file["event_id"], first, patterns.event_id)
        self._n_frames = last


def _open_in_place(path: Path) -> h5py.File:
    """Open for writing beside readers, in one step: killed at any moment, it leaves a readable file."""
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
        raise FileError(path, "is being read in this program, so it cannot be written.", hint) from error


def _n_bytes(patterns: Patterns) -> int:
    frames = patterns.frames
    own = (
        frames.pixel.nbytes + frames.count.nbytes + frames.start.nbytes
        if patterns.is_sparse
        else frames.nbytes
    )
    return int(own + 8 * len(patterns) + sum(column.nbytes for column in patterns.columns.values()))
