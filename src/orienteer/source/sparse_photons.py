"""Photon counts of many frames as lists of the lit pixels: the natural form of weak single-particle shots."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError


@dataclass(frozen=True, eq=False, repr=False)
class SparsePhotons:
    """Photon counts of N frames as lists of the lit pixels, in the layout of a CSR matrix.

    Frame d holds the entries ``start[d]:start[d + 1]``; its pixels ascend and no pixel occurs twice.
    Only shapes and lengths are checked here; readers and writers call :func:`check_photons`, which checks
    every entry.

    start : (N + 1,) int64, first entry of each frame.
    pixel : (L,) int32, flat pixel index.
    count : (L,) int32, photons, at least 1.
    n_pixels : pixels of a frame.
    """

    start: Array
    pixel: Array
    count: Array
    n_pixels: int

    def __post_init__(self) -> None:
        for name, dtype in (("start", np.int64), ("pixel", np.int32), ("count", np.int32)):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise OrienteerError(
                    f"photon list '{name}' is {array.dtype} of shape {array.shape}; expected 1D integers."
                )
            object.__setattr__(self, name, _as_integers(name, array, dtype))
        if len(self.start) == 0:
            raise OrienteerError(
                "photon list 'start' is empty; expected one entry more than there are frames."
            )
        if (
            len(self.pixel) != len(self.count)
            or int(self.start[0]) != 0
            or int(self.start[-1]) != len(self.pixel)
        ):
            raise OrienteerError(
                f"photon lists disagree: start runs from {int(self.start[0])} to {int(self.start[-1])}, "
                f"with {len(self.pixel)} pixels and {len(self.count)} counts."
            )

    def __len__(self) -> int:
        return len(self.start) - 1

    def __repr__(self) -> str:
        return (
            f"<SparsePhotons: {counted(len(self), 'frame')} x {self.n_pixels} pixels, {len(self.pixel)} lit>"
        )

    def __getitem__(self, frames: slice | Array) -> "SparsePhotons":
        """The chosen frames: a slice, a boolean mask, or indices in any order."""
        if isinstance(frames, slice) and frames.step in (None, 1):
            first, last, _ = frames.indices(len(self))
            start = self.start[first : max(first, last) + 1]
            entries = slice(int(start[0]), int(start[-1]))
            return SparsePhotons(start - start[0], self.pixel[entries], self.count[entries], self.n_pixels)
        xp = array_namespace(self.start)
        chosen = xp.arange(len(self))[frames if isinstance(frames, slice) else xp.asarray(frames)]
        lit = self.start[chosen + 1] - self.start[chosen]
        start = xp.zeros(len(chosen) + 1, dtype=np.int64)
        start[1:] = xp.cumulative_sum(lit)
        # Entry e of the result comes from this entry of the original.
        entries = repeat_each(self.start[chosen] - start[:-1], lit) + xp.arange(int(start[-1]))
        return SparsePhotons(start, self.pixel[entries], self.count[entries], self.n_pixels)

    @property
    def photons(self) -> Array:
        """Photons of each frame: (N,) int64."""
        xp = array_namespace(self.count)
        total = xp.zeros(len(self.count) + 1, dtype=np.int64)
        total[1:] = xp.cumulative_sum(self.count, dtype=np.int64)
        return total[self.start[1:]] - total[self.start[:-1]]


def photons_from_dense(frames: Array) -> SparsePhotons:
    """The lit pixels of dense integer frames (N, P).

    >>> photons_from_dense(np.array([[0, 2, 0, 1], [0, 0, 0, 0]])).start
    array([0, 2, 2])
    """
    xp = array_namespace(frames)
    n_frames, n_pixels = frames.shape
    lit = frames != 0
    (flat,) = xp.nonzero(lit.reshape(-1))
    start = xp.zeros(n_frames + 1, dtype=np.int64)
    start[1:] = xp.cumulative_sum(xp.count_nonzero(lit, axis=1), dtype=np.int64)
    pixel = (flat - repeat_each(xp.arange(n_frames) * n_pixels, start[1:] - start[:-1])).astype(np.int32)
    return SparsePhotons(start, pixel, frames.reshape(-1)[flat], n_pixels)


def dense_from_photons(photons: SparsePhotons) -> Array:
    """Dense frames (N, P) int32 from lists of photons."""
    xp = array_namespace(photons.count)
    frames = xp.zeros((len(photons), photons.n_pixels), dtype=np.int32)
    first = xp.arange(len(photons)) * photons.n_pixels
    frames.reshape(-1)[repeat_each(first, photons.start[1:] - photons.start[:-1]) + photons.pixel] = (
        photons.count
    )
    return frames


def photons_without(photons: SparsePhotons, forbidden: Array) -> SparsePhotons:
    """The lists without the entries at forbidden pixels, which are (N, P) or (1, P) bool."""
    xp = array_namespace(photons.count)
    frame = repeat_each(xp.arange(len(photons)), photons.start[1:] - photons.start[:-1])
    kept = ~xp.asarray(forbidden)[frame if len(forbidden) == len(photons) else 0, photons.pixel]
    n_kept = xp.zeros(len(kept) + 1, dtype=np.int64)
    n_kept[1:] = xp.cumulative_sum(kept, dtype=np.int64)
    return SparsePhotons(n_kept[photons.start], photons.pixel[kept], photons.count[kept], photons.n_pixels)


def concatenate_photons(parts: list[SparsePhotons]) -> SparsePhotons:
    """The frames of all parts, one after another."""
    xp = array_namespace(parts[0].start)
    offsets = np.cumsum([0] + [len(part.pixel) for part in parts])
    start = [part.start[:-1] + int(offset) for part, offset in zip(parts, offsets, strict=False)]
    return SparsePhotons(
        xp.concat([*start, xp.asarray(offsets[-1:])]),
        xp.concat([part.pixel for part in parts]),
        xp.concat([part.count for part in parts]),
        parts[0].n_pixels,
    )


def check_photons(photons: SparsePhotons) -> tuple[int, str] | None:
    """The first frame whose list breaks a rule, and which rule; None if all are sound."""
    xp = array_namespace(photons.start)
    backwards = photons.start[1:] < photons.start[:-1]
    if bool(xp.any(backwards)):
        return int(xp.argmax(backwards)), "starts after it ends"
    pixel, count = photons.pixel, photons.count
    if len(pixel) == 0:
        return None

    def frame_of(entry: Array) -> int:
        return int(xp.searchsorted(photons.start, entry, side="right")) - 1

    if int(xp.min(pixel)) < 0 or int(xp.max(pixel)) >= photons.n_pixels:
        entry = xp.argmax((pixel < 0) | (pixel >= photons.n_pixels))
        return frame_of(entry), f"lights pixel {int(pixel[entry])} of {photons.n_pixels}"
    if int(xp.min(count)) < 1:
        entry = xp.argmax(count < 1)
        return frame_of(
            entry
        ), f"has {int(count[entry])} photons at a listed pixel, where at least 1 is needed"
    falls = xp.empty(len(pixel), dtype=bool)
    falls[0] = False
    falls[1:] = pixel[1:] <= pixel[:-1]
    falls[photons.start[:-1][photons.start[:-1] < len(pixel)]] = False  # a new frame may begin anywhere
    if bool(xp.any(falls)):
        return frame_of(xp.argmax(falls)), "lists its pixels out of order or twice"
    return None


def repeat_each(values: Array, times: Array) -> Array:
    """``values[i]`` repeated ``times[i]`` times; CuPy's own repeat needs the times in host memory."""
    if not is_on_gpu(values):
        return np.repeat(values, times)
    xp = array_namespace(values)
    ends = xp.cumulative_sum(times)
    total = int(ends[-1]) if len(ends) else 0
    return values[xp.searchsorted(ends, xp.arange(total), side="right")]


def _as_integers(name: str, array: Array, dtype: Any) -> Array:
    """The array as the wanted integer type; numbers that do not fit are an error, never wrapped."""
    if array.dtype == dtype:
        return array
    limits = np.iinfo(dtype)
    if len(array) and (int(array.max()) > limits.max or int(array.min()) < limits.min):
        worst = int(to_numpy(array).max())
        raise OrienteerError(f"photon list '{name}' holds {worst}, more than {limits.max} of {limits.dtype}.")
    return array.astype(dtype)
