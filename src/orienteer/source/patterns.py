"""Patterns: a batch of frames, dense or as lists of photons, with one row of metadata per frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    array_namespace,
    choose_device,
    import_cupy,
    is_on_gpu,
    to_device,
    to_numpy,
)
from orienteer.compute.words import counted
from orienteer.detector.masks import PixelUse
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.source.sparse_photons import (
    SparsePhotons,
    check_photons,
    concatenate_photons,
    dense_from_photons,
    photons_from_dense,
    photons_without,
)

__all__ = ["FRAME_MASK", "Patterns", "SparsePhotons", "checked_event_ids", "concatenate", "first_bad_frame"]

# The column with a mask for every frame.
FRAME_MASK = "frame_mask"


@dataclass(frozen=True, eq=False, repr=False)
class Patterns:
    """N frames of P pixels, stored dense or as lists of photons and readable as either.

    Counts are integers and never negative; calibrated signal of an integrating detector is float, may be
    negative, and may be NaN only in pixels that the mask never uses.

    frames : (N, P) array of counts (integers) or calibrated signal (floats), or :class:`SparsePhotons`.
    event_id : (N,) uint64, the stable id of each shot, unique in a data set; always in host memory.  If none
        are given, the frames are numbered from 0.
    columns : per-frame metadata, each (N, ...).  Names end in the unit (``wavelength_A``).  Names that start
        with ``truth_`` mark what only a simulation knows; no reconstruction reads it.  ``frame_mask`` (N, P)
        uint8 holds levels of ``PixelUse``: forbidden pixels never count, and lists of photons omit them.
    has_event_ids : whether ``event_id`` holds real ids rather than frame numbers.  A writer keeps ids, but
        replaces frame numbers by its own, which continue from what it has written.  By default, whether
        event ids were given.

    >>> patterns = Patterns(np.array([[0, 2, 0, 1], [0, 0, 0, 0]]))
    >>> patterns.sparse().pixel
    array([1, 3], dtype=int32)
    >>> patterns[1:].event_id
    array([1], dtype=uint64)
    >>> patterns
    <Patterns: 2 frames x 4 pixels, dense int64>
    """

    frames: Array
    event_id: Array = None
    columns: Mapping[str, Array] = field(default_factory=dict)
    has_event_ids: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.frames, SparsePhotons):
            if not hasattr(self.frames, "dtype"):
                object.__setattr__(self, "frames", _as_array("frames", self.frames))
            if self.frames.ndim != 2:
                raise OrienteerError(
                    f"frames have shape {self.frames.shape}; expected (n_patterns, n_pixels)."
                )
            if self.frames.dtype.kind == "b":
                object.__setattr__(self, "frames", self.frames.view(np.uint8))
            if self.frames.dtype.kind not in "iuf":
                raise OrienteerError(
                    f"frames are {self.frames.dtype}; expected whole numbers (counts) or floats (signal)."
                )
        if self.has_event_ids is None:
            object.__setattr__(self, "has_event_ids", self.event_id is not None)
        if self.event_id is None:
            object.__setattr__(self, "event_id", np.arange(len(self), dtype=np.uint64))
        object.__setattr__(self, "event_id", checked_event_ids(self.event_id))
        columns = {
            name: column if hasattr(column, "dtype") else _as_array(f"column '{name}'", column)
            for name, column in self.columns.items()
        }
        object.__setattr__(self, "columns", MappingProxyType(columns))
        if self.event_id.ndim != 1:
            raise OrienteerError(f"event ids have shape {self.event_id.shape}; expected one per frame.")
        for name, column in {"event_id": self.event_id, **columns}.items():
            if column.ndim == 0 or len(column) != len(self):
                raise OrienteerError(
                    f"column '{name}' has shape {column.shape} for {counted(len(self), 'frame')}."
                )
        mask = columns.get(FRAME_MASK)
        if mask is not None and (mask.dtype != np.uint8 or mask.shape != (len(self), self.n_pixels)):
            raise OrienteerError(
                f"column '{FRAME_MASK}' is {mask.dtype} of shape {mask.shape}; expected uint8 of shape "
                f"{(len(self), self.n_pixels)}."
            )

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        if isinstance(self.frames, SparsePhotons):
            storage = f"sparse, {len(self.frames.pixel) / max(len(self), 1):.3g} lit pixels per frame"
        else:
            storage = f"dense {self.frames.dtype}"
        place = ", on GPU" if self.is_on_gpu else ""
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return (
            f"<Patterns: {counted(len(self), 'frame')} x {self.n_pixels} pixels, {storage}{place}{columns}>"
        )

    def __getitem__(self, frames: int | slice | Array) -> "Patterns":
        """The chosen frames: a slice, a boolean mask, indices in any order, or one index (a batch of one)."""
        if isinstance(frames, int | np.integer):
            if not -len(self) <= frames < len(self):
                raise IndexError(f"frame {frames} of {len(self)}")
            first = int(frames) % len(self)
            frames = slice(first, first + 1)
        elif not isinstance(frames, slice):
            frames = (
                frames if hasattr(frames, "dtype") else np.asarray(frames, dtype=None if len(frames) else int)
            )
            if frames.dtype.kind == "b" and frames.shape != (len(self),):
                raise IndexError(f"a mask of shape {frames.shape} for {counted(len(self), 'frame')}")
        return Patterns(
            self.frames[_index_for(self.frames, frames)],
            self.event_id[_index_for(self.event_id, frames)],
            {name: column[_index_for(column, frames)] for name, column in self.columns.items()},
            self.has_event_ids,
        )

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        return self.frames.n_pixels if isinstance(self.frames, SparsePhotons) else int(self.frames.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the frames are stored as lists of photons."""
        return isinstance(self.frames, SparsePhotons)

    @property
    def is_on_gpu(self) -> bool:
        """Whether the frames live in GPU memory."""
        return is_on_gpu(self.frames.count if isinstance(self.frames, SparsePhotons) else self.frames)

    @property
    def photons(self) -> Array:
        """(N,) photons (int64) or summed signal (float64, NaN counts as 0), ``frame_mask`` applied."""
        frames = self.without_forbidden().frames
        if isinstance(frames, SparsePhotons):
            return frames.photons
        if frames.dtype.kind != "f":
            return frames.sum(axis=1, dtype=np.int64)
        xp = array_namespace(frames)
        return xp.where(xp.isnan(frames), 0, frames).sum(axis=1, dtype=np.float64)

    @property
    def forbidden(self) -> Array | None:
        """(N, P) bool, pixels that ``frame_mask`` forbids; None if there is no such column."""
        mask = self.columns.get(FRAME_MASK)
        return None if mask is None else mask >= PixelUse.NEVER

    def without_forbidden(self, never_used: Array | None = None) -> "Patterns":
        """The patterns with 0 in every pixel that ``frame_mask`` or ``never_used`` (P,) bool forbids."""
        forbidden = self.forbidden
        if never_used is not None:
            forbidden = never_used[None, :] if forbidden is None else forbidden | never_used
        if forbidden is None:
            return self
        if isinstance(self.frames, SparsePhotons):
            frames: Array = photons_without(self.frames, forbidden)
        else:
            frames = array_namespace(self.frames).where(forbidden, self.frames.dtype.type(0), self.frames)
        return Patterns(frames, self.event_id, self.columns, self.has_event_ids)

    def dense(self) -> Array:
        """The frames as an (N, P) array: as stored, or int32 when made from lists of photons."""
        return dense_from_photons(self.frames) if isinstance(self.frames, SparsePhotons) else self.frames

    def sparse(self) -> SparsePhotons:
        """The frames as lists of photons, without pixels that ``frame_mask`` forbids; they must be counts."""
        frames = self.without_forbidden().frames
        if isinstance(frames, SparsePhotons):
            return frames
        if self.frames.dtype.kind == "f":
            raise OrienteerError(
                f"frames are {self.frames.dtype} signal; only counts can become lists of photons.",
                "Turn the signal into counts first: Patterns(np.rint(frames).astype(np.int32)).",
            )
        return photons_from_dense(frames)

    def to(self, device: DeviceName) -> "Patterns":
        """The same patterns in the memory of a device; ids and text columns stay in host memory."""
        if isinstance(self.frames, SparsePhotons):
            photons = self.frames
            frames: Array = SparsePhotons(
                to_device(photons.start, device),
                to_device(photons.pixel, device),
                to_device(photons.count, device),
                photons.n_pixels,
            )
        else:
            frames = to_device(self.frames, device)
        numbers = {n: to_device(c, device) if c.dtype.kind in "biufc" else c for n, c in self.columns.items()}
        return Patterns(frames, self.event_id, numbers, self.has_event_ids)

    def with_columns(self, **columns: Array) -> "Patterns":
        """The same frames with columns added or replaced."""
        return Patterns(self.frames, self.event_id, {**self.columns, **columns}, self.has_event_ids)

    def with_event_ids(self, event_id: Array) -> "Patterns":
        """The same frames with these event ids."""
        return Patterns(self.frames, event_id, self.columns)


def concatenate(parts: Sequence[Patterns]) -> Patterns:
    """The frames of all parts in order; all must have the same pixels and the same columns.

    The result is sparse if every part is, and dense otherwise.  If some parts have frame numbers instead of
    event ids and a number would occur twice, all frames are numbered anew from 0.
    """
    if not parts:
        raise OrienteerError("there is nothing to concatenate: the list of patterns is empty.")
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts:
        if part.n_pixels != first.n_pixels:
            raise GeometryMismatch(
                f"patterns of {first.n_pixels} and of {part.n_pixels} pixels cannot be joined."
            )
        if set(part.columns) != set(first.columns):
            names = ", ".join(sorted(set(part.columns) ^ set(first.columns)))
            raise OrienteerError(f"patterns cannot be joined: only some of them have the columns {names}.")
    if all(part.is_sparse for part in parts):
        frames: Array = concatenate_photons([part.frames for part in parts])
    else:
        frames = _join([part.dense() for part in parts])
    columns = {name: _join([part.columns[name] for part in parts]) for name in first.columns}
    ids = np.concatenate([part.event_id for part in parts])
    are_names = all(part.has_event_ids for part in parts)
    if not are_names and len(np.unique(ids)) < len(ids):
        ids = np.arange(len(ids), dtype=np.uint64)
    return Patterns(frames, ids, columns, are_names)


def first_bad_frame(patterns: Patterns, never_used: Array | None = None) -> tuple[int, str] | None:
    """The first frame that breaks the rules of :class:`Patterns`, and which rule; None if all are sound.

    never_used : (P,) bool, pixels that may hold anything, NaN included; None if every pixel counts.
    """
    if isinstance(patterns.frames, SparsePhotons):
        return check_photons(patterns.frames)
    frames = patterns.frames
    if frames.size == 0 or frames.dtype.kind == "u":
        return None
    xp = array_namespace(frames)
    if frames.dtype.kind == "i":
        # One quick pass first: nearly every batch is sound.
        if int(frames.min()) >= 0:
            return None
        bad, what = frames < 0, "a negative count"
    else:
        bad, what = ~xp.isfinite(frames), "a value that is not a finite number"
    if never_used is not None:
        bad = bad & ~xp.asarray(never_used)[None, :]
    if patterns.forbidden is not None:
        bad = bad & ~patterns.forbidden
    rows = bad.any(axis=1)
    if not bool(rows.any()):
        return None
    frame = int(rows.argmax())
    pixel = int(bad[frame].argmax())
    return frame, f"has {what} ({frames[frame, pixel]}) at pixel {pixel}"


def checked_event_ids(event_id: Array) -> NDArray[np.uint64]:
    """Event ids as uint64 in host memory; anything but whole numbers from 0 is an error.

    >>> checked_event_ids([3, 5])
    array([3, 5], dtype=uint64)
    """
    ids = to_numpy(event_id if hasattr(event_id, "dtype") else _as_array("event ids", event_id))
    expected = "expected whole numbers from 0."
    if ids.dtype.kind not in "iu":
        raise OrienteerError(f"event ids are {ids.dtype}; {expected}")
    if ids.dtype.kind == "i" and ids.size and int(ids.min()) < 0:
        raise OrienteerError(f"an event id is {ids.min()}; {expected}", "Number the events from 0.")
    return ids.astype(np.uint64, copy=False)


def _as_array(name: str, given: Any) -> Array:
    """Nested lists of numbers as an array; rows of different length are an error."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        raise OrienteerError(f"{name} cannot be made into an array: its rows differ in length.") from error


def _index_for(array: Array, frames: slice | Array) -> slice | Array:
    """The index in the memory (host or GPU) of the array that it is used on."""
    if isinstance(frames, slice):
        return frames
    on_gpu = is_on_gpu(array.start if isinstance(array, SparsePhotons) else array)
    return import_cupy().asarray(frames) if on_gpu else to_numpy(frames)  # type: ignore[union-attr]


def _join(arrays: Sequence[Array]) -> Array:
    if any(is_on_gpu(array) for array in arrays) and choose_device("auto") == "cuda":
        return import_cupy().concatenate([import_cupy().asarray(array) for array in arrays])  # type: ignore[union-attr]
    return np.concatenate(arrays)
