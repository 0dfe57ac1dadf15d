"""Dragonfly's binary ``.emc`` files: photon lists, or dense frames of int32 or float64.

A header of 256 little-endian int32 holds the number of frames N, the number of pixels P and the frame type;
its other words may hold anything.  After it, type 0 (photon lists) has ones[N], multi[N], place_ones,
place_multi and count_multi; types 1 and 2 have N x P int32 or float64.  The format cannot store event ids
(frames are numbered), columns, frame shape or geometry: give the detector as ``geometry=``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.reading import COPY_AGAIN, check_holds
from orienteer.detector.panel import LARGEST_N_PIXELS
from orienteer.errors import FileError, OrienteerError
from orienteer.source.file_source import FileSource
from orienteer.source.patterns import Patterns
from orienteer.source.sparse_photons import SparsePhotons, repeat_each
from orienteer.source.writer import PatternWriter

FORMAT_NAME = "Dragonfly EMC"
EXTENSIONS = (".emc",)
HEADER_BYTES = 1024
SPARSE, DENSE_INTEGER, DENSE_FLOAT = 0, 1, 2
_DTYPE: dict[int, np.dtype[Any]] = {DENSE_INTEGER: np.dtype("<i4"), DENSE_FLOAT: np.dtype("<f8")}
_INT32 = np.dtype("<i4")
_LARGEST = 2**31 - 1
LOST = ("event ids", "columns", "detector", "mask", "frame shape", "polarisation", "metadata")


def recognise(path: Path, head: bytes, hdf5: Any | None) -> bool:
    """Whether the file begins with N >= 0, P >= 1 and a frame type, and has the size that they ask for.

    The format has no other signature.  An MRC map of 1 or 2 sections can begin with such words and have such
    a size, so it is excluded by its own mark.  A file named ``.emc`` with another size is taken for a damaged
    one: opening it then says what is wrong.
    """
    if hdf5 is not None or len(head) < HEADER_BYTES or head[208:211] == b"MAP":
        return False
    n_frames, n_pixels, frame_type = np.frombuffer(head, _INT32, 3).tolist()
    if n_frames < 0 or n_pixels < 1 or frame_type not in (SPARSE, DENSE_INTEGER, DENSE_FLOAT):
        return False
    expected, size = HEADER_BYTES, path.stat().st_size
    if frame_type in _DTYPE:
        expected += n_frames * n_pixels * _DTYPE[frame_type].itemsize
    elif HEADER_BYTES + 8 * n_frames <= size:
        ones, multi = np.fromfile(path, _INT32, 2 * n_frames, offset=HEADER_BYTES).reshape(2, n_frames)
        lit_bytes = 4 * int(ones.sum(dtype=np.int64)) + 8 * int(multi.sum(dtype=np.int64))
        expected += 8 * n_frames + lit_bytes
    return bool(size == expected) or path.suffix.lower() == ".emc"


def open_file(path: Path) -> EmcSource:
    """The frames of an ``.emc`` file."""
    return EmcSource(path)


class EmcSource(FileSource):
    """Frames of a binary ``.emc`` file; opening reads only how many pixels of each frame are lit.

    frame_type : 0 photon lists, 1 dense int32, 2 dense float64.
    """

    format = FORMAT_NAME

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        size = path.stat().st_size
        header = self._words(_INT32, 0, 3)
        self.n_frames, n_pixels, self.frame_type = header.tolist()
        self.frame_shape = (n_pixels,)
        if n_pixels > LARGEST_N_PIXELS:
            raise FileError(path, f"declares {n_pixels} pixels, more than any detector has.", COPY_AGAIN)
        self.is_sparse = self.frame_type == SPARSE
        if self.is_sparse:
            self._index_photons(size)
        else:
            self.bytes_per_value = _DTYPE[self.frame_type].itemsize
            _check_size(path, HEADER_BYTES + self.n_frames * n_pixels * self.bytes_per_value, size)

    def _index_photons(self, size: int) -> None:
        """Where the lists of each frame begin, as int64: their total passes 2^31 in real data."""
        n = self.n_frames
        check_holds(self.path, "photons per frame", HEADER_BYTES + 8 * n, size)
        lit = self._words(_INT32, HEADER_BYTES, 2 * n).reshape(2, n)
        if n and lit.min() < 0:
            frame = int(np.argmax((lit < 0).any(axis=0)))
            raise FileError(self.path, f"frame {frame} has a negative number of lit pixels.", COPY_AGAIN)
        self._ones, self._multi = (np.concatenate([[0], np.cumsum(row, dtype=np.int64)]) for row in lit)
        self._place_ones = HEADER_BYTES + 8 * n
        self._place_multi = self._place_ones + 4 * int(self._ones[-1])
        self._count_multi = self._place_multi + 4 * int(self._multi[-1])
        _check_size(self.path, self._count_multi + 4 * int(self._multi[-1]), size)

    def _words(self, dtype: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
        """``count`` numbers from byte ``offset`` on; not mapped: if a mapped file shrinks, we crash."""
        values = np.fromfile(self.path, dtype, count, offset=offset)
        if len(values) != count:
            raise FileError(
                self.path,
                f"ends after {len(values)} of {count} numbers at byte {offset}.",
                "Copy the file again; it is not complete.",
            )
        return values.astype(dtype.newbyteorder("="), copy=False)

    def _read_frames(self, rows: slice) -> Any:
        n_frames = rows.stop - rows.start
        if not self.is_sparse:
            dtype = _DTYPE[self.frame_type]
            offset = HEADER_BYTES + rows.start * self.n_pixels * dtype.itemsize
            return self._words(dtype, offset, n_frames * self.n_pixels).reshape(n_frames, self.n_pixels)
        ones, multi = self._ones[rows.start : rows.stop + 1], self._multi[rows.start : rows.stop + 1]
        place_ones = self._words(_INT32, self._place_ones + 4 * int(ones[0]), int(ones[-1] - ones[0]))
        n_multi = int(multi[-1] - multi[0])
        place_multi = self._words(_INT32, self._place_multi + 4 * int(multi[0]), n_multi)
        count_multi = self._words(_INT32, self._count_multi + 4 * int(multi[0]), n_multi)
        return join_photon_lists(
            np.diff(ones), place_ones, np.diff(multi), place_multi, count_multi, self.n_pixels, rows.start
        )


def join_photon_lists(
    ones: NDArray[Any],
    place_ones: NDArray[np.int32],
    multi: NDArray[Any],
    place_multi: NDArray[np.int32],
    count_multi: NDArray[np.int32],
    n_pixels: int,
    first: int = 0,
) -> SparsePhotons:
    """Dragonfly's two lists per frame (single photons, several photons) as one list with ascending pixels.

    ones, multi : (N,) entries of each frame in the lists.
    first : number of the first frame, for error messages.
    """
    frames = np.arange(len(ones), dtype=np.int64)
    pixel = np.concatenate([place_ones, place_multi])
    frame = np.concatenate([repeat_each(frames, ones), repeat_each(frames, multi)])
    outside = (pixel < 0) | (pixel >= n_pixels)
    if outside.any():
        entry = int(np.argmax(outside))
        raise OrienteerError(f"frame {first + frame[entry]} lights pixel {pixel[entry]} of {n_pixels}.")
    # Both lists mostly ascend already, and a stable sort merges ascending runs in linear time.
    order = np.argsort(frame * n_pixels + pixel, kind="stable")
    count = np.concatenate([np.ones(len(place_ones), np.int32), count_multi])
    start = np.concatenate([[0], np.cumsum(ones + multi, dtype=np.int64)])
    return SparsePhotons(start, pixel[order], count[order], n_pixels)


def _check_size(path: Path, expected: int, size: int) -> None:
    if size != expected:
        raise FileError(path, f"has {size} bytes, but its header and lists ask for {expected}.", COPY_AGAIN)


class Writer(PatternWriter):
    """Writes ``.emc`` files in bounded memory.

    frame_type : "sparse", "integer" or "float"; by default what suits the first batch: "float" for signal,
        "sparse" for lists of photons, and for dense counts whichever of "sparse" and "integer" is smaller.
    """

    format: ClassVar[str] = FORMAT_NAME
    keeps_mask: ClassVar[bool] = False
    lost_on_write: ClassVar[tuple[str, ...]] = LOST

    def __init__(
        self, path: Any, *, frame_type: Literal["sparse", "integer", "float"] | None = None, **common: Any
    ) -> None:
        super().__init__(path, **common)
        types = {None: None, "sparse": SPARSE, "integer": DENSE_INTEGER, "float": DENSE_FLOAT}
        if frame_type not in types:
            raise OrienteerError(f"frame type '{frame_type}' is not one of sparse, integer and float.")
        self._type = types[frame_type]
        self._spools: dict[str, IO[bytes]] = {}
        self._file: IO[bytes] | None = None
        self._n_pixels = 0

    def _start(self, temporary: Path, first: Patterns) -> None:
        self._n_pixels = first.n_pixels
        if self._n_pixels > _LARGEST:
            raise OrienteerError(
                f"{self.path}: frames of {self._n_pixels} pixels are too large for int32.",
                "Write another format, such as .h5.",
            )
        if self._type is None:
            self._type = _fitting_type(first)
        self._file = temporary.open("wb")
        self._file.write(bytes(HEADER_BYTES))
        if self._type == SPARSE:
            # The file starts with sums that are known last, so the lists wait in temporary files beside it.
            names = ("ones", "multi", "place_ones", "place_multi", "count_multi")
            self._spools = {name: tempfile.TemporaryFile(dir=temporary.parent) for name in names}  # noqa: SIM115

    def _write(self, patterns: Patterns) -> None:
        if self._type == SPARSE:
            self._spool(_counts(patterns, self.path).sparse())
        else:
            if self._type == DENSE_INTEGER:
                frames = _as_int32(_counts(patterns, self.path).dense(), self.path)
            else:
                frames = patterns.dense().astype("<f8")
            self._out.write(np.ascontiguousarray(frames).data)

    def _spool(self, photons: SparsePhotons) -> None:
        several = photons.count > 1
        frame = repeat_each(np.arange(len(photons)), np.diff(photons.start))
        lists = {
            "ones": np.bincount(frame[~several], minlength=len(photons)),
            "multi": np.bincount(frame[several], minlength=len(photons)),
            "place_ones": photons.pixel[~several],
            "place_multi": photons.pixel[several],
            "count_multi": photons.count[several],
        }
        for name, values in lists.items():
            self._spools[name].write(values.astype("<i4").tobytes())

    @property
    def _out(self) -> IO[bytes]:
        if self._file is None:
            raise OrienteerError(f"{self.path}: the file is not open.")
        return self._file

    def _finish(self) -> None:
        if self.n_written > _LARGEST:
            raise OrienteerError(
                f"{self.path}: {self.n_written} frames are too many for int32.",
                "Write several files, or another format, such as .h5.",
            )
        for spool in self._spools.values():
            spool.seek(0)
            shutil.copyfileobj(spool, self._out, 1 << 20)
        self._out.seek(0)
        self._out.write(np.array([self.n_written, self._n_pixels, self._type], "<i4").tobytes())
        self._discard()

    def _discard(self) -> None:
        for file in (self._file, *self._spools.values()):
            if file is not None:
                file.close()
        self._file, self._spools = None, {}


def _fitting_type(patterns: Patterns) -> int:
    if patterns.is_sparse:
        return SPARSE
    frames = patterns.dense()
    if frames.dtype.kind == "f":
        return DENSE_FLOAT
    listed = 4 * int(np.count_nonzero(frames == 1)) + 8 * int(np.count_nonzero(frames > 1)) + 8 * len(frames)
    return SPARSE if listed <= 4 * frames.size else DENSE_INTEGER


def _counts(patterns: Patterns, path: Path) -> Patterns:
    if not patterns.is_sparse and patterns.dense().dtype.kind == "f":
        raise OrienteerError(
            f"{path}: the file holds photon counts, but {patterns.dense().dtype} signal was added.",
            "Write another format, such as .h5, or convert signal to photons first.",
        )
    return patterns


def _as_int32(frames: NDArray[Any], path: Path) -> NDArray[np.int32]:
    if frames.size and int(frames.max()) > _LARGEST:
        raise OrienteerError(
            f"{path}: a count of {int(frames.max())} is too large for int32.",
            "Write another format, such as .h5.",
        )
    return frames.astype("<i4")
