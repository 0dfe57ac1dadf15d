"""Several NumPy arrays in a ``.npz`` file: frames or lists of photons, event ids and columns.

``frames`` (N, ...), or the photon lists ``start`` (N + 1,), ``pixel`` (L,), ``count`` (L,) and
``frame_shape``; ``event_id`` (N,) if frames have ids; ``pixel_use``, the three levels of a mask in the shape
of a frame; every other array is a column and has N rows.  If a file has a single array, of any name, it holds
the frames.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.reading import check_holds
from orienteer.detector.masks import check_mask
from orienteer.errors import FileError, OrienteerError
from orienteer.source.file_source import FileSource
from orienteer.source.patterns import Patterns, SparsePhotons
from orienteer.source.stored_array import StoredArray, file_bytes, npy_header, read_npy_header
from orienteer.source.writer import PatternWriter

FORMAT_NAME = "NumPy archive"
EXTENSIONS = (".npz",)

_ZIP_MAGIC = b"PK\x03\x04"
_ZIP_LOCAL_HEADER_BYTES = 30
_ENCRYPTED = 0x1
_DEFLATE_RATIO = 1100
_KINDS = {
    "frames": "biuf",
    "start": "iu",
    "pixel": "iu",
    "count": "iu",
    "frame_shape": "iu",
    "event_id": "iu",
    "pixel_use": "iu",
}
_RESERVED = set(_KINDS)


def recognise(path: Path, head: bytes, hdf5: Any | None) -> bool:
    """Whether this is a zip archive whose first member is a ``.npy`` file."""
    n_name = int.from_bytes(head[26:28], "little")
    return head.startswith(_ZIP_MAGIC) and head[30 : 30 + n_name].endswith(b".npy")


def open_file(path: Path) -> NpzSource:
    """The frames of a ``.npz`` file; none are read."""
    return NpzSource(path)


class NpzSource(FileSource):
    """Frames, ids and columns in a NumPy archive.

    Uncompressed arrays (``np.savez``) are read by rows; compressed ones are loaded whole on first use.
    """

    format = FORMAT_NAME

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        arrays = _list_arrays(path)
        if len(arrays) == 1 and not _RESERVED & set(arrays):
            arrays = {"frames": next(iter(arrays.values()))}
        self._arrays = arrays
        self.is_sparse = "frames" not in arrays
        missing = {"start", "pixel", "count", "frame_shape"} - set(arrays) if self.is_sparse else set()
        if missing:
            raise FileError(
                path,
                f"holds neither 'frames' nor photon lists (no {', '.join(sorted(missing))}).",
                "Save the frames under that name: np.savez(path, frames=array).",
            )
        if self.is_sparse:
            self._look_at_photons(path)
        else:
            frames = arrays["frames"]
            if len(frames.shape) < 2:
                raise FileError(
                    path,
                    f"holds frames of shape {frames.shape}; expected (n_frames, ...).",
                    "Save an array (n_frames, rows, columns).",
                )
            self.frame_shape, self.n_frames = frames.shape[1:], len(frames)
            self.bytes_per_value = frames.dtype.itemsize
        if not 0 < self.n_pixels < 2**31:
            raise FileError(path, f"declares frames of shape {self.frame_shape}, which is impossible.")
        self.stored_columns = tuple(name for name in arrays if name not in _RESERVED)
        for name in (*self.stored_columns, *(["event_id"] if "event_id" in arrays else [])):
            if not arrays[name].shape or len(arrays[name]) != self.n_frames:
                raise FileError(
                    path, f"holds '{name}' of shape {arrays[name].shape} for {self.n_frames} frames."
                )

        if "pixel_use" in arrays:
            if arrays["pixel_use"].shape != self.frame_shape:
                raise FileError(path, f"holds 'pixel_use' of shape {arrays['pixel_use'].shape}.")
            self.mask = check_mask(arrays["pixel_use"].all(), self.frame_shape)

    def _look_at_photons(self, path: Path) -> None:
        start, pixel, count, shape = (
            self._arrays[name] for name in ("start", "pixel", "count", "frame_shape")
        )
        if len(shape.shape) != 1 or not 1 <= len(shape) <= 8:
            raise FileError(path, f"holds 'frame_shape' of shape {shape.shape}.")
        self.frame_shape = tuple(int(n) for n in shape.all())
        if any(len(part.shape) != 1 for part in (start, pixel, count)) or len(start) < 1:
            raise FileError(
                path, f"holds photon lists of shapes {start.shape}, {pixel.shape} and {count.shape}."
            )
        if len(pixel) != len(count):
            raise FileError(path, f"holds {len(pixel)} pixels but {len(count)} counts.")
        self.n_frames = len(start) - 1

    def _read_event_ids(self, rows: slice) -> Any:
        return self._arrays["event_id"].rows(rows.start, rows.stop) if "event_id" in self._arrays else None

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Any]:
        return {name: self._arrays[name].rows(rows.start, rows.stop) for name in names}

    def _read_frames(self, rows: slice) -> Any:
        arrays, n_frames = self._arrays, rows.stop - rows.start
        if not self.is_sparse:
            return arrays["frames"].rows(rows.start, rows.stop).reshape(n_frames, self.n_pixels)
        start = arrays["start"].rows(rows.start, rows.stop + 1).astype(np.int64)
        begin, end = int(start[0]), int(start[-1])
        if begin < 0 or end > len(arrays["pixel"]) or np.any(np.diff(start) < 0):
            raise OrienteerError(f"photon lists are out of order in frames {rows.start} to {rows.stop}.")
        pixel, count = arrays["pixel"].rows(begin, end), arrays["count"].rows(begin, end)
        return SparsePhotons(start - begin, pixel, count, self.n_pixels)


@dataclass(frozen=True)
class _PackedArray(StoredArray):
    """An array in a compressed member of the archive, loaded whole on first use."""

    member: str

    @cached_property
    def _values(self) -> NDArray[Any]:
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
            stream.read(self.offset)
            values = np.frombuffer(stream.read(), self.dtype)
        order: Literal["F", "C"] = "F" if self.is_fortran else "C"
        return values.reshape(self.shape, order=order).astype(self.dtype.newbyteorder("="))

    def rows(self, first: int, last: int) -> NDArray[Any]:
        return self._values[first:last]


def _list_arrays(path: Path) -> dict[str, StoredArray]:
    arrays: dict[str, StoredArray] = {}
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            kinds = _KINDS.get(name, "biufcSU")
            if name == member.filename or member.flag_bits & _ENCRYPTED:
                raise FileError(path, f"holds '{member.filename}', which is not a readable NumPy array.")
            what = f"'{name}'"
            if member.compress_type == zipfile.ZIP_STORED:
                file.seek(member.header_offset)
                header = file.read(_ZIP_LOCAL_HEADER_BYTES)
                if len(header) < _ZIP_LOCAL_HEADER_BYTES or not header.startswith(_ZIP_MAGIC):
                    raise FileError(path, f"is damaged: {what} is not where the archive says.")
                n_name, n_extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
                begin = member.header_offset + _ZIP_LOCAL_HEADER_BYTES + n_name + n_extra
                check_holds(path, what, member.file_size, file_bytes(file) - begin)
                file.seek(begin)
                arrays[name] = read_npy_header(file, path, member.file_size, kinds, what)
            else:
                check_holds(path, what, member.compress_size, file_bytes(file))
                check_holds(path, what, member.file_size, member.compress_size * _DEFLATE_RATIO)
                with archive.open(member) as stream:
                    stored = read_npy_header(stream, path, member.file_size, kinds, what)
                arrays[name] = _PackedArray(**vars(stored), member=member.filename)
    return arrays


class Writer(PatternWriter):
    """Writes frames or photon lists, ids and columns; arrays wait in temporary files until the end."""

    format: ClassVar[str] = FORMAT_NAME
    lost_on_write: ClassVar[tuple[str, ...]] = ("detector", "metadata", "polarisation")

    def _start(self, temporary: Path, first: Patterns) -> None:
        if taken := _RESERVED & set(first.columns):
            raise OrienteerError(
                f"{self.path}: '{taken.pop()}' cannot be the name of a column in this format."
            )
        self._archive = temporary
        self._stack = ExitStack()
        self._is_sparse = first.is_sparse
        self._n_entries = 0
        self._spools: dict[str, tuple[IO[bytes], np.dtype[Any], tuple[int, ...]]] = {}
        for name, rows in self._rows(first).items():
            spool = self._stack.enter_context(TemporaryFile(dir=temporary.parent))  # noqa: SIM115
            shape = self.frame_shape or () if name == "frames" else rows.shape[1:]
            self._spools[name] = (spool, rows.dtype, shape)
        if self._is_sparse:
            self._spools["start"][0].write(np.zeros(1, np.int64).tobytes())

    def _write(self, patterns: Patterns) -> None:
        rows = self._rows(patterns)
        if set(rows) != set(self._spools):
            differing = ", ".join(sorted(set(rows) ^ set(self._spools)))
            raise OrienteerError(f"{self.path}: the batch and the file differ in {differing}.")
        for name, values in rows.items():
            spool, dtype, shape = self._spools[name]
            if not np.can_cast(values.dtype, dtype, "safe") or (
                name != "frames" and values.shape[1:] != shape
            ):
                raise OrienteerError(
                    f"{self.path}: '{name}' is {values.dtype} in this batch, but {dtype} in the file."
                )
            np.ascontiguousarray(values, dtype=dtype).tofile(spool)
        if self._is_sparse:
            self._n_entries += len(rows["pixel"])

    def _rows(self, patterns: Patterns) -> dict[str, NDArray[Any]]:
        rows: dict[str, NDArray[Any]] = {"event_id": patterns.event_id, **patterns.columns}
        if self._is_sparse:
            photons = patterns.frames if patterns.is_sparse else patterns.sparse()
            rows |= {
                "start": photons.start[1:] + self._n_entries,
                "pixel": photons.pixel,
                "count": photons.count,
            }
        else:
            rows |= {"frames": patterns.dense()}
        return rows

    def _finish(self) -> None:
        with zipfile.ZipFile(self._archive, "w", allowZip64=True) as archive:
            for name, (spool, dtype, shape) in self._spools.items():
                row_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
                spool.seek(0, 2)
                n_rows = spool.tell() // max(1, row_bytes)
                spool.seek(0)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    member.write(npy_header(dtype, (n_rows, *shape)))
                    copyfileobj(spool, member, 2**20)
            sizes = np.array(self.frame_shape, np.int64)
            constant: dict[str, NDArray[Any]] = {"frame_shape": sizes} if self._is_sparse else {}
            if self.mask is not None:
                constant["pixel_use"] = np.ascontiguousarray(self.mask).reshape(sizes)
            for name, values in constant.items():
                with archive.open(f"{name}.npy", "w") as member:
                    member.write(npy_header(values.dtype, values.shape) + values.tobytes())
        self._discard()

    def _discard(self) -> None:
        if hasattr(self, "_stack"):
            self._stack.close()
