"""Source: where patterns come from, one interface for files, streams and simulations.

A file format is one module that subclasses :class:`FileSource` and ``PatternWriter`` (``writer.py``) and is
listed in ``opening.py``, where ``FormatModule`` says what it offers.  HDF5 formats open their files through
``compute/hdf5_reading.py``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import Array, DeviceName
from orienteer.compute.reading import reading
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns, concatenate, first_bad_frame

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

BATCH_BYTES = 64 * 2**20
# The mask level of pixels that are never used (docs/reference/conventions.md).
NEVER = 2


@runtime_checkable
class Source(Protocol):
    """A set of patterns that is read by batch.  Opening one reads no frames.

    format : the name of the file format, such as "CXI".
    path : the file; None for what has no file.
    detector : the pixels; None when the data carry no geometry (give ``geometry=`` on opening).
    frame_shape : shape of one frame as stored; its product is n_pixels.
    n_pixels : pixels of a frame.
    column_names : the metadata columns that ``read`` returns with the frames.
    is_sparse : whether frames come as lists of photons.
    """

    format: str
    path: Path | None
    detector: Detector | None
    frame_shape: tuple[int, ...]
    column_names: tuple[str, ...]
    is_sparse: bool

    def __len__(self) -> int: ...

    @property
    def n_pixels(self) -> int: ...

    def read(self, frames: slice | ArrayLike = slice(None)) -> Patterns:
        """The chosen frames (a slice, or indices in any order) with their columns."""
        ...

    def batches(self, size: int | None = None, device: DeviceName = "cpu") -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time (by default as many as fit in 64 MiB)."""
        ...


class FileSource(ABC):
    """What all readers of files share: choosing frames, batches, geometry, checks and closing.

    A format sets ``format``, ``frame_shape``, ``column_names``, ``is_sparse``, ``n_frames`` and, where the
    file has one, ``detector`` and ``mask``, and gives ``_read_range``.  What ``_read_range`` raises becomes
    a FileError, and every batch is checked before it is handed out.

    mask : (P,) uint8 three-level mask of the file itself; None when it has none.
    metadata : constant facts of the whole file (seed, creator, settings).
    """

    format: str = ""
    path: Path | None
    detector: Detector | None = None
    mask: NDArray[np.uint8] | None = None
    frame_shape: tuple[int, ...] = ()
    column_names: tuple[str, ...] = ()
    is_sparse: bool = False
    n_frames: int = 0
    bytes_per_value: int = 4

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self.metadata: dict[str, Any] = {}

    @abstractmethod
    def _read_range(self, first: int, last: int) -> Patterns:
        """Frames ``first:last`` with their columns; 0 <= first <= last <= n_frames."""

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Let go of the file."""

    def __len__(self) -> int:
        return self.n_frames

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        shape = " x ".join(str(n) for n in self.frame_shape)
        geometry = "" if self.detector is not None else ", no geometry"
        columns = f", columns {', '.join(self.column_names)}" if self.column_names else ""
        storage = "sparse" if self.is_sparse else "dense"
        frames = f"{len(self)} frames of {shape} pixels, {storage}"
        return f"<{self.format} {self.name!r}: {frames}{geometry}{columns}>"

    @property
    def name(self) -> str:
        """The path, or "array" for data that have no file."""
        return "array" if self.path is None else str(self.path)

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    @property
    def frames_per_batch(self) -> int:
        """Frames that fit in 64 MiB: of their dense form, or for sparse frames of a quarter of it."""
        frame_bytes = self.n_pixels * self.bytes_per_value // (4 if self.is_sparse else 1)
        return max(1, BATCH_BYTES // max(1, frame_bytes))

    @property
    def never_used(self) -> NDArray[np.bool_] | None:
        """Pixels that may hold anything, NaN included: (P,) bool; None when every pixel counts."""
        masks = [mask for mask in (self.mask, getattr(self.detector, "mask", None)) if mask is not None]
        return np.logical_or.reduce([np.asarray(mask) == NEVER for mask in masks]) if masks else None

    def attach(self, detector: Detector | None) -> None:
        """Give the frames their detector; a file's own detector gives way to it."""
        if detector is None:
            return
        if detector.n_pixels != self.n_pixels:
            shape = " x ".join(str(n) for n in self.frame_shape)
            raise GeometryMismatch(
                f"{self.name}: frames have {self.n_pixels} pixels ({shape}), but the geometry "
                f"'{detector.name}' describes {detector.n_pixels}.",
                f"Give the geometry of this detector, or try: orienteer inspect {self.name}",
            )
        self.detector = detector

    def read(self, frames: slice | ArrayLike = slice(None)) -> Patterns:
        """The chosen frames (a slice, a boolean mask, or indices in any order) with their columns."""
        if isinstance(frames, slice) and frames.step in (None, 1):
            first, last, _ = frames.indices(len(self))
            return self._read_checked(first, max(first, last))
        indices = self._indices(frames)
        if len(indices) == 0:
            return self._read_checked(0, 0)
        ordered, back = np.unique(indices, return_inverse=True)
        breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
        runs = np.split(ordered, breaks)
        return concatenate([self._read_checked(int(run[0]), int(run[-1]) + 1) for run in runs])[back]

    def batches(self, size: int | None = None, device: DeviceName = "cpu") -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time (by default as many as fit in 64 MiB)."""
        step = self.frames_per_batch if size is None else size
        if step < 1:
            raise OrienteerError(f"a batch of {step} frames was asked for; it needs at least 1.")
        for first in range(0, len(self), step):
            yield self._read_checked(first, min(first + step, len(self))).to(device)

    def _indices(self, frames: slice | ArrayLike) -> NDArray[np.int64]:
        if isinstance(frames, slice):
            return np.arange(len(self))[frames]
        chosen = np.atleast_1d(np.asarray(frames, dtype=None if np.size(frames) else np.int64))
        if chosen.dtype.kind == "b" and chosen.shape == (len(self),):
            return np.flatnonzero(chosen)
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
            raise OrienteerError(
                f"{self.name}: frames are chosen by a slice, a mask of {len(self)} or whole numbers, "
                f"not by {chosen.dtype} of shape {chosen.shape}."
            )
        chosen = chosen.astype(np.int64)
        wrong = (chosen < -len(self)) | (chosen >= len(self))
        if wrong.any():
            raise OrienteerError(
                f"{self.name}: frame {chosen[wrong][0]} was asked for; there are {len(self)}."
            )
        return chosen % len(self) if len(self) else chosen

    def _read_checked(self, first: int, last: int) -> Patterns:
        if self.path is None:
            patterns = self._read_range(first, last)
        else:
            with reading(self.path):
                patterns = self._read_range(first, last)
        if len(patterns) != last - first or patterns.n_pixels != self.n_pixels:
            raise FileError(
                self.name,
                f"gave {len(patterns)} frames of {patterns.n_pixels} pixels, "
                f"where {last - first} of {self.n_pixels} were expected.",
            )
        bad = first_bad_frame(patterns, self.never_used)
        if bad is not None:
            raise FileError(self.name, f"frame {first + bad[0]} {bad[1]}.", _hint(patterns.frames))
        return patterns


def _hint(frames: Array) -> str:
    if getattr(frames, "dtype", np.dtype(int)).kind == "f":
        return "Give a geometry whose mask excludes bad pixels, or calibrate the frames again."
    return "The file is damaged, or its values are not photon counts."
