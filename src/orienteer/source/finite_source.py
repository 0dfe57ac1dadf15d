"""FiniteSource: a set of frames in a file or in memory, read in ranges of frame numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import orienteer
from orienteer.compute.arrays import Array, DeviceName
from orienteer.compute.words import counted
from orienteer.detector.masks import PixelUse, combine_masks
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.base import shapes_fit
from orienteer.source.patterns import FRAME_MASK, Patterns, checked_event_ids, concatenate, first_bad_frame
from orienteer.source.wavelength import WAVELENGTH, is_wavelength

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector, Polarisation

BATCH_BYTES = 64 * 2**20
MOST_FRAMES = 1 << 15
Result = TypeVar("Result")
FrameMask = Callable[[slice], NDArray[np.uint8]]


@dataclass(frozen=True)
class Given:
    """What the user or a geometry file adds to the data.

    detector : replaces the detector of the data.
    wavelength_A : for events that carry none; with ``wavelength_of_all``, for all events.
    polarisation, metadata : used if the data carry none.
    frame_masks : functions, each of which returns levels (n, P) for a range of frames.
    """

    detector: Detector | None = None
    wavelength_A: float | None = None
    wavelength_of_all: bool = False
    polarisation: Polarisation | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    frame_masks: tuple[FrameMask, ...] = ()


class FiniteSource(ABC):
    """Base of all sources with a known number of frames: choice of frames, batches, geometry and checks.

    A subclass sets ``format``, ``frame_shape``, ``stored_columns``, ``is_sparse``, ``n_frames`` and, if the
    data have them, ``mask``, ``polarisation`` and ``metadata``.  It calls ``attach`` with its own detector
    and implements ``_read_frames`` and, if the data have them, ``_read_event_ids`` and ``_read_columns``.
    Every batch is checked before it is returned.
    """

    format: str = ""
    path: Path | None = None
    detector: Detector | None = None
    mask: NDArray[np.uint8] | None = None
    polarisation: Polarisation | None = None
    frame_shape: tuple[int, ...] = ()
    stored_columns: tuple[str, ...] = ()
    is_sparse: bool = False
    n_frames: int = 0
    bytes_per_value: int = 4
    # At most this many unwanted frames between two chosen ones are read and dropped instead of starting a
    # second read.  Useful if frames are small and each read is expensive.
    frames_read_across: int = 0
    given: Given = Given()

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}

    @abstractmethod
    def _read_frames(self, rows: slice) -> Array:
        """Frames ``rows.start:rows.stop`` as (n, P) or SparsePhotons; 0 <= start <= stop <= n_frames."""

    def _read_event_ids(self, rows: slice) -> Array | None:
        """The event ids of these frames; None if the data have none, so that frames are numbered."""
        return None

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, Array]:
        """These columns (all of them among ``stored_columns``) of these frames."""
        return {}

    def _attempt(self, read: Callable[[], Result]) -> Result:
        """Call ``read``; subclasses add their error handling and retries."""
        return read()

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Close what is open, which a source made by ``with_detector`` shares."""

    def refresh(self) -> int:
        """Look again for new frames; returns how many there are now."""
        return self.n_frames

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
        frames = f"{counted(len(self), 'frame')} of {shape} pixels, {storage}"
        return f"<{self.format} {self.name!r}: {frames}{geometry}{columns}>"

    def show(self, title: str = "", *, wavelength_A: float | None = None) -> Any:
        """The picture of the data set: mean frame, radial profile, photons per frame, a few frames."""
        return orienteer.show(self, title, wavelength_A=wavelength_A)  # loads plot/, which imports source/

    @property
    def name(self) -> str:
        """The path, or "array" for data that have no file."""
        return "array" if self.path is None else str(self.path)

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return math.prod(self.frame_shape)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that ``read`` returns with the frames."""
        names = list(self.stored_columns)
        names += [WAVELENGTH] if self.given.wavelength_A is not None else []
        names += [FRAME_MASK] if self.given.frame_masks else []
        return tuple(dict.fromkeys(names))

    @property
    def frames_per_batch(self) -> int:
        """Frames that fit in 64 MiB, by their dense size, or a quarter of it for sparse frames.

        At most 32 768, because the columns of frames of few pixels need more memory than the pixels.
        """
        frame_bytes = self.n_pixels * self.bytes_per_value // (4 if self.is_sparse else 1)
        return max(1, min(BATCH_BYTES // max(1, frame_bytes), MOST_FRAMES))

    @property
    def never_used(self) -> NDArray[np.bool_] | None:
        """(P,) bool, pixels that may hold anything, NaN included; None if every pixel counts."""
        mask = self.mask if self.detector is None else self.detector.mask
        return None if mask is None else np.asarray(mask) == PixelUse.NEVER

    def attach(self, detector: Detector | None) -> None:
        """Set the detector that the data carry, and add its mask to the mask of the data."""
        if detector is None:
            return
        self.detector = self._merged(detector)
        # Pixels that this detector does not cover stay allowed: another geometry may cover them.
        forbidden = np.where(detector.covered, detector.mask, np.uint8(0))
        self.mask = forbidden if self.mask is None else combine_masks(self.mask, forbidden)

    def with_detector(self, detector: Detector) -> Self:
        """The same data with this detector; its mask and that of the data are combined by maximum."""
        return self.with_given(replace(self.given, detector=detector))

    def with_given(self, given: Given) -> Self:
        """The same data with what the user or a geometry file adds to them."""
        other = copy(self)
        other.given = given
        other.apply_given()
        return other

    def apply_given(self) -> None:
        """Apply what was given; also called each time the data have been looked at again."""
        if self.given.detector is not None:
            self.detector = self._merged(self.given.detector)
        self.polarisation = self.polarisation or self.given.polarisation
        self.metadata = {**self.given.metadata, **self.metadata}

    def _merged(self, detector: Detector) -> Detector:
        if not shapes_fit(detector.frame_shape, self.frame_shape):
            theirs, mine = (" x ".join(map(str, s)) for s in (detector.frame_shape, self.frame_shape))
            raise GeometryMismatch(
                f"{self.name}: frames have {self.n_pixels} pixels ({mine}), but the geometry "
                f"'{detector.name}' describes {detector.n_pixels} ({theirs}).",
                f"Give the geometry of this detector, or try: orienteer inspect {self.name}",
            )
        if self.mask is None or bool((self.mask <= detector.mask).all()):
            return detector
        return detector.with_mask(combine_masks(detector.mask, self.mask))

    def read(self, frames: slice | ArrayLike = slice(None)) -> Patterns:
        """The chosen frames (a slice, a boolean mask, or indices in any order) with their columns."""
        return self._choose(frames, self._patterns, concatenate, Patterns.__getitem__)

    def event_ids(self, frames: slice | ArrayLike = slice(None)) -> NDArray[np.uint64]:
        """The event ids (n,) of the chosen frames, without reading the frames."""
        return self._choose(
            frames, lambda rows: self._named(rows)[0], np.concatenate, lambda ids, order: ids[order]
        )

    def read_columns(
        self, names: Collection[str] | None = None, frames: slice | ArrayLike = slice(None)
    ) -> dict[str, NDArray[Any]]:
        """Columns (n, ...) of the chosen frames by name, by default all columns; no frame is read."""
        wanted = self.column_names if names is None else tuple(names)
        if unknown := [name for name in wanted if name not in self.column_names]:
            known = ", ".join(self.column_names) or "none"
            raise OrienteerError(f"{self.name}: there is no column '{unknown[0]}'.", f"Columns: {known}.")
        return self._choose(
            frames,
            lambda rows: self._all_columns(wanted, rows),
            lambda parts: {name: np.concatenate([part[name] for part in parts]) for name in wanted},
            lambda columns, order: {name: column[order] for name, column in columns.items()},
        )

    def batches(self, size: int | None = None, device: DeviceName = "cpu") -> Iterator[Patterns]:
        """All frames in order, ``size`` at a time (by default as many as fit in 64 MiB)."""
        step = self.frames_per_batch if size is None else size
        if step < 1:
            raise OrienteerError(f"a batch of {step} frames was asked for; it needs at least 1.")
        for first in range(0, len(self), step):
            rows = slice(first, min(first + step, len(self)))
            yield self._attempt(partial(self._patterns, rows)).to(device)

    def _choose(
        self,
        frames: slice | ArrayLike,
        read: Callable[[slice], Result],
        join: Callable[[list[Result]], Result],
        take: Callable[[Result, NDArray[np.int64]], Result],
    ) -> Result:
        """Read the chosen frames, in as few ranges as possible."""
        if isinstance(frames, slice) and frames.step in (None, 1):
            first, last, _ = frames.indices(len(self))
            return self._attempt(lambda: read(slice(first, max(first, last))))
        indices = self._indices(frames)
        ordered, back = np.unique(indices, return_inverse=True)
        if not len(ordered):
            return self._attempt(lambda: read(slice(0, 0)))
        is_apart = np.diff(ordered) > 1 + self.frames_read_across
        parts = []
        for run in np.split(ordered, np.flatnonzero(is_apart) + 1):
            part = self._attempt(partial(read, slice(int(run[0]), int(run[-1]) + 1)))
            has_more = int(run[-1]) - int(run[0]) >= len(run)
            parts.append(take(part, run - run[0]) if has_more else part)
        return take(join(parts), back)

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
                f"{self.name}: frame {chosen[wrong][0]} was asked for; there are {len(self)}.",
                "Frames are counted from 0.",
            )
        return chosen % len(self) if len(self) else chosen

    def _named(self, rows: slice) -> tuple[NDArray[np.uint64], bool]:
        """The ids of these frames, and whether they are real event ids rather than frame numbers."""
        ids = self._read_event_ids(rows)
        if ids is None:
            return np.arange(rows.start, rows.stop, dtype=np.uint64), False
        return checked_event_ids(ids), True

    def _all_columns(self, names: Sequence[str], rows: slice) -> dict[str, Array]:
        stored = [name for name in names if name in self.stored_columns]
        columns = self._read_columns(stored, rows)
        n, given = rows.stop - rows.start, self.given
        if given.wavelength_A is not None and WAVELENGTH in names:
            found = columns.get(WAVELENGTH, np.full(n, np.nan))
            is_given = ~is_wavelength(found) | given.wavelength_of_all
            columns[WAVELENGTH] = np.where(is_given, given.wavelength_A, found)
        if given.frame_masks and FRAME_MASK in names:
            masks = [mask(rows) for mask in given.frame_masks]
            own = [columns[FRAME_MASK]] if FRAME_MASK in columns else []
            columns[FRAME_MASK] = combine_masks(*own, *masks)
        return {name: columns[name] for name in names}

    def _patterns(self, rows: slice) -> Patterns:
        ids, are_names = self._named(rows)
        columns = self._all_columns(self.column_names, rows)
        patterns = Patterns(self._read_frames(rows), ids, columns, has_event_ids=are_names)
        n = rows.stop - rows.start
        if len(patterns) != n or patterns.n_pixels != self.n_pixels:
            found = f"{counted(len(patterns), 'frame')} of {patterns.n_pixels} pixels"
            raise FileError(self.name, f"gave {found}, but {n} of {self.n_pixels} were expected.")
        bad = first_bad_frame(patterns, self.never_used)
        if bad is not None:
            raise FileError(self.name, f"frame {rows.start + bad[0]} {bad[1]}.", _hint(patterns.frames))
        return patterns


def _hint(frames: Array) -> str:
    if getattr(frames, "dtype", np.dtype(int)).kind == "f":
        return "Give a geometry whose mask excludes bad pixels, or calibrate the frames again."
    return "The file is damaged, or its values are not photon counts."
