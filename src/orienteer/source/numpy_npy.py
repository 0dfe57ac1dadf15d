"""One NumPy array of frames in a ``.npy`` file: nothing but the frames."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from orienteer.errors import FileError, OrienteerError
from orienteer.source.file_source import FileSource
from orienteer.source.patterns import Patterns
from orienteer.source.stored_array import NPY_MAGIC, file_bytes, npy_header, read_npy_header
from orienteer.source.writer import PatternWriter

FORMAT_NAME = "NumPy array"
EXTENSIONS = (".npy",)


def recognise(path: Path, head: bytes, hdf5: Any | None) -> bool:
    """Whether this is a ``.npy`` file."""
    return head.startswith(NPY_MAGIC)


def open_file(path: Path) -> NpySource:
    """The frames of a ``.npy`` file; none are read."""
    return NpySource(path)


class NpySource(FileSource):
    """Frames in one array (N, ...) on disk, of counts or signal."""

    format = FORMAT_NAME

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with path.open("rb") as file:
            self._frames = read_npy_header(file, path, file_bytes(file), "biuf", "frames")
        if len(self._frames.shape) < 2:
            raise FileError(
                path,
                f"holds an array of shape {self._frames.shape}; expected (n_frames, ...).",
                "Save an array (n_frames, rows, columns).",
            )
        self.frame_shape = self._frames.shape[1:]
        if self.n_pixels == 0:
            raise FileError(path, f"declares frames of shape {self.frame_shape}, without a pixel.")
        self.n_frames = len(self._frames)
        self.bytes_per_value = self._frames.dtype.itemsize

    def _read_frames(self, rows: slice) -> Any:
        return self._frames.rows(rows.start, rows.stop).reshape(rows.stop - rows.start, self.n_pixels)


class Writer(PatternWriter):
    """Writes the frames, dense, as one array (N, *frame_shape)."""

    format: ClassVar[str] = FORMAT_NAME
    keeps_mask: ClassVar[bool] = False
    lost_on_write: ClassVar[tuple[str, ...]] = (
        "event ids", "columns", "detector", "mask", "polarisation", "metadata",
    )  # fmt: skip

    _file: IO[bytes] | None = None

    def _start(self, temporary: Path, first: Patterns) -> None:
        self._dtype = np.dtype(np.int32) if first.is_sparse else first.frames.dtype
        self._file = temporary.open("wb")
        self._file.write(npy_header(self._dtype, (0, *(self.frame_shape or ()))))

    def _write(self, patterns: Patterns) -> None:
        frames = patterns.dense()
        if not np.can_cast(frames.dtype, self._dtype, "safe"):
            raise OrienteerError(
                f"{self.path}: frames of {frames.dtype} do not fit in a file of {self._dtype}."
            )
        np.ascontiguousarray(frames, dtype=self._dtype).tofile(self._file)  # type: ignore[arg-type]

    def _finish(self) -> None:
        if self._file is not None:
            self._file.seek(0)
            self._file.write(npy_header(self._dtype, (self.n_written, *(self.frame_shape or ()))))
        self._discard()

    def _discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
