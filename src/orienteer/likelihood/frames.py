"""Frames over the pixel list of a reconstruction: what products and likelihoods read."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import (
    Array,
    DeviceName,
    array_namespace,
    choose_device,
    is_on_gpu,
    to_device,
    to_numpy,
)
from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError
from orienteer.source.patterns import FRAME_MASK, Patterns, SparsePhotons
from orienteer.source.sparse_photons import dense_from_photons, photons_from_dense, repeat_each

# Whole numbers up to here are exact in float16 (and in TF32).
LARGEST_HALF_COUNT = 2048
# Numbers handled at once where a whole batch would need a large temporary array.
_CHUNK = 1 << 24

Layout = Literal["dense", "sparse"]


@dataclass(frozen=True, eq=False, repr=False)
class FrameBatch:
    """D frames over a list of P pixels, of which the first ``n_scored`` orient and all P merge.

    Exactly one of ``dense`` and ``photons`` holds the counts.  All arrays live on one device.

    dense : (D, P) uint8, uint16, float16 or float32, or None.
    photons : lists of lit pixels, as places in the pixel list, ascending: scored ones come first; or None.
    missing : lists of the pixels that single frames forbid, count 1 each; None where no frame forbids any.
        ``dense`` and ``photons`` hold nothing there.
    n_pixels, n_scored : P and the number of scored pixels.
    scored_photons : (D,) float64, sum over the scored pixels.
    photons_total : (D,) float64, sum over all P pixels.
    squares : (D,) float64, sum of squared counts over the scored pixels.
    """

    dense: Array | None
    photons: SparsePhotons | None
    missing: SparsePhotons | None
    n_pixels: int
    n_scored: int
    scored_photons: Array
    photons_total: Array
    squares: Array

    @classmethod
    def prepare(
        cls,
        patterns: Patterns,
        pixels: Array,
        n_scored: int,
        device: DeviceName = "auto",
        layout: Layout = "dense",
        *,
        compact: bool = False,
    ) -> "FrameBatch":
        """The chosen pixels of the patterns, in memory of the device.

        pixels : (P,) places in a frame, each at most once, the scored ones first.
        layout : "dense" for bright frames, "sparse" where few pixels are lit (whole counts only).
        compact : dense counts in as few bytes as they need also on the GPU, where the products else find
            them ready as float16.

        A frame's own mask takes pixels out: level 2 everywhere; level 1 (merge only) from the scored ones,
        where it counts as forbidden.
        """
        _check_pixels(to_numpy(pixels), n_scored, patterns.n_pixels)
        device = choose_device(device)
        pixels = to_device(pixels, "cuda" if patterns.is_on_gpu else "cpu")
        forbidden = _forbidden(patterns, pixels, n_scored)
        missing = None if forbidden is None else photons_from_dense(forbidden)
        dense: Any = None
        photons: Any = None
        if patterns.is_sparse:
            photons = _photons_over(patterns.frames, pixels, forbidden)
        else:
            dense = _dense_over(patterns, pixels, forbidden)
        if layout == "sparse" and photons is None:
            photons = _lit_pixels(dense)
        elif layout == "dense" and dense is None:
            dense = dense_from_photons(photons)
        if layout == "sparse":
            dense, sums = None, _sums_of_photons(photons, n_scored)
        else:
            photons, sums = None, _sums_of_dense(dense, n_scored)
            dense = to_device(dense.astype(_storage(dense, device, compact), copy=False), device)
        return cls(
            dense, _move(photons, device), _move(missing, device), len(pixels), n_scored,
            *(to_device(column, device) for column in sums),
        )  # fmt: skip

    def __post_init__(self) -> None:
        if (self.dense is None) == (self.photons is None):
            raise OrienteerError("a batch of frames holds either dense frames or lists of photons.")

    def __len__(self) -> int:
        return len(self.scored_photons)

    def __repr__(self) -> str:
        kind = "sparse" if self.dense is None else f"dense {self.dense.dtype}"
        place = ", on GPU" if self.is_on_gpu else ""
        size = f"{len(self)} frames x {self.n_pixels} pixels ({self.n_scored} scored)"
        return f"<FrameBatch: {size}, {kind}{place}>"

    def __getitem__(self, frames: slice | Array) -> "FrameBatch":
        """The chosen frames: a slice, a boolean mask, or indices in any order."""
        if not isinstance(frames, slice):
            frames = array_namespace(self.squares).asarray(frames)
        return FrameBatch(
            None if self.dense is None else self.dense[frames],
            None if self.photons is None else self.photons[frames],
            None if self.missing is None else self.missing[frames],
            self.n_pixels, self.n_scored,
            self.scored_photons[frames], self.photons_total[frames], self.squares[frames],
        )  # fmt: skip

    @property
    def is_on_gpu(self) -> bool:
        """Whether the frames live in GPU memory."""
        return is_on_gpu(self.squares)

    @cached_property
    def nbytes(self) -> int:
        """Memory of the frames and their lists in bytes."""
        arrays: list[Any] = [] if self.dense is None else [self.dense]
        for photons in (self.photons, self.missing):
            if photons is not None:
                arrays += [photons.start, photons.pixel, photons.count]
        return sum(int(array.nbytes) for array in arrays)


def scored_stop(photons: SparsePhotons, n_scored: int) -> Array:
    """End of each frame's scored entries: (D,) int64; they are ``photons.start[d]:scored_stop[d]``."""
    if n_scored >= photons.n_pixels:
        return photons.start[1:]
    xp = array_namespace(photons.start)
    before = xp.zeros(len(photons.pixel) + 1, dtype=np.int64)
    before[1:] = xp.cumulative_sum(photons.pixel < n_scored, dtype=np.int64)
    return photons.start[:-1] + before[photons.start[1:]] - before[photons.start[:-1]]


def first_of_each(ascending: Array, n: int) -> Array:
    """(n + 1,) int64: the place of the first number >= i among ascending integers, for i from 0 to n."""
    xp = array_namespace(ascending)
    if len(ascending) == 0:
        return xp.zeros(n + 1, dtype=np.int64)
    return xp.searchsorted(ascending, xp.arange(n + 1, dtype=ascending.dtype)).astype(np.int64)


def _check_pixels(pixels: NDArray[Any], n_scored: int, n_all: int) -> None:
    if pixels.ndim != 1 or pixels.dtype.kind not in "iu":
        raise OrienteerError(
            f"the pixel list is {pixels.dtype} of shape {pixels.shape}; expected (P,) integers."
        )
    if len(pixels) and not 0 <= int(pixels.min()) <= int(pixels.max()) < n_all:
        raise OrienteerError(f"the pixel list leaves the frame, which has {n_all} pixels.")
    if len(np.unique(pixels)) != len(pixels):
        raise OrienteerError("the pixel list names a pixel twice.")
    if not 0 <= n_scored <= len(pixels):
        raise OrienteerError(f"{n_scored} scored pixels do not fit a list of {len(pixels)}.")


def _forbidden(patterns: Patterns, pixels: Array, n_scored: int) -> Array | None:
    """(D, P) uint8, 1 where a frame's own mask forbids a pixel of the list; None where none does."""
    if FRAME_MASK not in patterns.columns:
        return None
    xp = array_namespace(pixels)
    level = xp.asarray(patterns.columns[FRAME_MASK])[:, pixels]
    scored = xp.arange(len(pixels)) < n_scored
    forbidden = level >= xp.where(scored, int(PixelUse.MERGE_ONLY), int(PixelUse.NEVER))
    return forbidden.astype(np.uint8) if bool(forbidden.any()) else None


def _photons_over(photons: SparsePhotons, pixels: Array, forbidden: Array | None) -> SparsePhotons:
    """The lists with places in the pixel list instead of pixels, ascending within a frame."""
    xp = array_namespace(photons.start)
    place = xp.full(photons.n_pixels, -1, dtype=np.int64)
    place[pixels] = xp.arange(len(pixels))
    frame = repeat_each(xp.arange(len(photons)), photons.start[1:] - photons.start[:-1])
    new = place[photons.pixel]
    kept = new >= 0
    if forbidden is not None:
        kept &= forbidden[frame, xp.where(kept, new, 0)] == 0
    frame, new, count = frame[kept], new[kept], photons.count[kept]
    order = xp.argsort(frame * len(pixels) + new)
    start = first_of_each(frame, len(photons))
    return SparsePhotons(start, new[order].astype(np.int32), count[order], len(pixels))


def _dense_over(patterns: Patterns, pixels: Array, forbidden: Array | None) -> Array:
    """(D, P) counts or float32 signal at the pixels, nothing where forbidden."""
    frames = patterns.frames[:, pixels]
    xp = array_namespace(frames)
    if forbidden is not None:
        frames = xp.where(forbidden != 0, frames.dtype.type(0), frames)
    if frames.dtype.kind == "f":
        frames = frames.astype(np.float32, copy=False)
        bad = ~xp.isfinite(frames).all(axis=1)
        what = "a value that is not a finite number"
    elif frames.dtype.kind == "i" and frames.size and int(frames.min()) < 0:
        bad, what = (frames < 0).any(axis=1), "a negative count"
    else:
        return frames
    if bool(bad.any()):
        event = int(patterns.event_id[int(bad.argmax())])
        raise OrienteerError(
            f"event {event} has {what} in a pixel that is used.",
            "Mask that pixel, or leave the frame out.",
        )
    return frames


def _lit_pixels(dense: Array) -> SparsePhotons:
    if dense.dtype.kind == "f":
        raise OrienteerError(
            "the frames are signal, not counts, and have no list of photons.",
            "Use the dense layout for them.",
        )
    return photons_from_dense(dense)


def _storage(counts: Array, device: str, compact: bool) -> Any:
    """The type that holds the values exactly in the fewest bytes that the device likes."""
    if counts.dtype.kind == "f":
        return np.float32
    largest = int(counts.max()) if counts.size else 0
    if device == "cuda" and not compact and largest <= LARGEST_HALF_COUNT:
        return np.float16
    return np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.float32


def _sums_of_dense(dense: Array, n_scored: int) -> tuple[Array, Array, Array]:
    """Scored photons, all photons and squares of each frame, each (D,) float64, in bounded memory."""
    xp = array_namespace(dense)
    scored, total, squares = (xp.zeros(len(dense), dtype=np.float64) for _ in range(3))
    step = max(1, _CHUNK // max(1, dense.shape[1]))
    for first in range(0, len(dense), step):
        part = dense[first : first + step].astype(np.float64)
        chunk = slice(first, first + len(part))
        total[chunk] = part.sum(axis=1)
        part = part[:, :n_scored]
        scored[chunk] = part.sum(axis=1)
        squares[chunk] = (part * part).sum(axis=1)
    return scored, total, squares


def _sums_of_photons(photons: SparsePhotons, n_scored: int) -> tuple[Array, Array, Array]:
    xp = array_namespace(photons.start)
    n_frames = len(photons)
    frame = repeat_each(xp.arange(n_frames), photons.start[1:] - photons.start[:-1])
    if len(frame) == 0:
        scored, total, squares = (xp.zeros(n_frames, dtype=np.float64) for _ in range(3))
        return scored, total, squares
    count = photons.count.astype(np.float64)
    scored = xp.where(photons.pixel < n_scored, count, 0.0)
    # Whole numbers below 2^53 add up exactly in any order.
    scored_sum, total, squares = (
        xp.bincount(frame, weights=w, minlength=n_frames) for w in (scored, count, scored * scored)
    )
    return scored_sum, total, squares


def _move(photons: SparsePhotons | None, device: DeviceName) -> SparsePhotons | None:
    if photons is None:
        return None
    start, pixel, count = (to_device(a, device) for a in (photons.start, photons.pixel, photons.count))
    return SparsePhotons(start, pixel, count, photons.n_pixels)
