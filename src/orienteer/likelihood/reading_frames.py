"""Reads patterns into counts over a pixel list: one reader for each way in which patterns are stored.

All readers take the same arguments: patterns, the pixels (P,) on the patterns' device, the number of scored
pixels, the pixels that each frame forbids (D, P) or None, and layout, device and storage of the result.  They
return the counts, dense or as lists, on that device, and three sums of each frame, (D,) float64: scored
photons, all photons, and squares over the scored pixels.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, array_namespace, is_on_gpu, to_device, to_numpy
from orienteer.detector.masks import PixelUse
from orienteer.errors import OrienteerError
from orienteer.source.patterns import FRAME_MASK, Patterns, SparsePhotons
from orienteer.source.sparse_photons import photons_from_dense, repeat_each

Layout: TypeAlias = Literal["dense", "sparse"]
Sums: TypeAlias = tuple[Array, Array, Array]

# Whole numbers up to here are exact in float16 (and in TF32).
LARGEST_HALF_COUNT = 2048
# Numbers handled at once where a whole batch would need a large temporary array.
_CHUNK = 1 << 24


def check_pixels(pixels: NDArray[Any], n_scored: int, n_all: int) -> None:
    """Refuse a pixel list (P,) that does not fit frames of ``n_all`` pixels."""
    if pixels.ndim != 1 or pixels.dtype.kind not in "iu":
        raise OrienteerError(
            f"the pixel list is {pixels.dtype} of shape {pixels.shape}; expected (P,) integers."
        )
    if len(pixels) and not 0 <= int(pixels.min()) <= int(pixels.max()) < n_all:
        raise OrienteerError(f"the pixel list leaves the frame; its numbers must be from 0 to below {n_all}.")
    if len(pixels) and int(np.bincount(pixels).max()) > 1:
        raise OrienteerError("the pixel list names a pixel twice.")
    if not 0 <= n_scored <= len(pixels):
        raise OrienteerError(f"{n_scored} scored pixels do not fit a list of {len(pixels)}.")


def forbidden_pixels(patterns: Patterns, pixels: Array, n_scored: int) -> Array | None:
    """(D, P) uint8, 1 where a frame's own mask forbids a pixel of the list; None if no frame forbids any."""
    if FRAME_MASK not in patterns.columns:
        return None
    xp = array_namespace(pixels)
    level = xp.asarray(patterns.columns[FRAME_MASK])[:, pixels]
    scored = xp.arange(len(pixels)) < n_scored
    forbidden = level >= xp.where(scored, int(PixelUse.MERGE_ONLY), int(PixelUse.NEVER))
    # Choosing columns gives an array in column-major order; the kernels are compiled for row-major arrays.
    return forbidden.astype(np.uint8, order="C") if bool(forbidden.any()) else None


def move_photons(photons: SparsePhotons, device: DeviceName) -> SparsePhotons:
    """The lists in the memory of the device."""
    start, pixel, count = (to_device(a, device) for a in (photons.start, photons.pixel, photons.count))
    return SparsePhotons(start, pixel, count, photons.n_pixels)


def read_lists(
    patterns: Patterns, pixels: Array, n_scored: int, forbidden: Array | None, layout: Layout,
    device: DeviceName, compact: bool,
) -> tuple[Any, Sums]:  # fmt: skip
    """From lists of photons on any device."""
    if is_on_gpu(patterns.frames.start):
        photons = _photons_over(patterns.frames, pixels, forbidden)
        sums = _sums_of_photons(photons, n_scored)
    else:
        photons, sums = _host_photons_over(patterns.frames, to_numpy(pixels), forbidden, n_scored)
    photons = move_photons(photons, device)
    if layout == "sparse":
        return photons, sums
    return spread_photons(photons, device, compact), sums


def read_host(
    patterns: Patterns, pixels: Array, n_scored: int, forbidden: Array | None, layout: Layout,
    device: DeviceName, compact: bool,
) -> tuple[Any, Sums]:  # fmt: skip
    """From dense frames in host memory, without a copy in their own type."""
    from orienteer.likelihood import _frames_numba as twin

    frames = patterns.frames if patterns.frames.dtype != np.float16 else patterns.frames.astype(np.float32)
    is_signal = frames.dtype.kind == "f"
    given = frames, pixels, np.zeros((0, 0), np.uint8) if forbidden is None else forbidden
    lit = np.zeros(len(frames) + 1, dtype=np.int64)
    lowest, highest, scored, total, squares = (np.zeros(len(frames)) for _ in range(5))
    twin.look(*given, n_scored, lit[1:], lowest, highest, scored, total, squares)
    _refuse(patterns, np.isnan(lowest) if is_signal else lowest < 0, is_signal)
    sums = scored, total, squares
    if layout == "sparse":
        _refuse_signal(is_signal)
        start = np.cumsum(lit)
        place, count = (np.empty(int(start[-1]), dtype=np.int32) for _ in range(2))
        if float(highest.max(initial=0)) > np.iinfo(np.int32).max:
            raise OrienteerError(
                f"a pixel counts {highest.max():.0f} photons, more than a list can hold.",
                "Are these photons? Mask the pixel, or convert the signal to photons first.",
            )
        twin.list_lit(*given, start, place, count)
        return move_photons(SparsePhotons(start, place, count, len(pixels)), device), sums
    largest = float(highest.max(initial=0))
    dense = np.empty((len(frames), len(pixels)), dtype=_storage(largest, is_signal, "cpu", True))
    twin.take(*given, dense)
    kind = _storage(largest, is_signal, device, compact)
    return to_device(dense, device).astype(kind, copy=False), sums


def read_dense(
    patterns: Patterns, pixels: Array, n_scored: int, forbidden: Array | None, layout: Layout,
    device: DeviceName, compact: bool,
) -> tuple[Any, Sums]:  # fmt: skip
    """From dense frames on the GPU."""
    frames = patterns.frames[:, pixels]
    xp = array_namespace(frames)
    is_signal = frames.dtype.kind == "f"
    if forbidden is not None:
        frames = xp.where(forbidden != 0, frames.dtype.type(0), frames)
    _refuse(patterns, (~xp.isfinite(frames) if is_signal else frames < 0).any(axis=1), is_signal)
    if layout == "sparse":
        _refuse_signal(is_signal)
        photons = photons_from_dense(frames)
        return move_photons(photons, device), _sums_of_photons(photons, n_scored)
    sums = _sums_of_dense(frames, n_scored)
    largest = float(frames.max()) if frames.size else 0.0
    return to_device(frames.astype(_storage(largest, is_signal, device, compact), copy=False), device), sums


def spread_photons(photons: SparsePhotons, device: DeviceName, compact: bool) -> Array:
    """Lists as counts (D, P) on their device, in the type that dense frames have there."""
    largest = float(photons.count.max()) if len(photons.count) else 0.0
    xp, P = array_namespace(photons.start), photons.n_pixels
    dense = xp.zeros((len(photons), P), dtype=_storage(largest, False, device, compact))
    first = repeat_each(xp.arange(len(photons)) * P, photons.start[1:] - photons.start[:-1])
    dense.reshape(-1)[first + photons.pixel] = photons.count.astype(dense.dtype)
    return dense


def first_of_each(ascending: Array, n: int) -> Array:
    """(n + 1,) int64: the place of the first number >= i among ascending integers, for i from 0 to n.

    >>> first_of_each(np.array([0, 0, 2]), 3)
    array([0, 2, 2, 3])
    """
    xp = array_namespace(ascending)
    if len(ascending) == 0:
        return xp.zeros(n + 1, dtype=np.int64)
    return xp.searchsorted(ascending, xp.arange(n + 1, dtype=ascending.dtype)).astype(np.int64)


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


def _host_photons_over(
    photons: SparsePhotons, pixels: NDArray[Any], forbidden: Array | None, n_scored: int
) -> tuple[SparsePhotons, Sums]:
    """:func:`_photons_over` for lists in host memory, and their sums."""
    from orienteer.likelihood import _lists_numba as twin

    place = np.full(photons.n_pixels, -1, dtype=np.int64)
    place[pixels] = np.arange(len(pixels))
    allowed = np.zeros((0, 0), np.uint8) if forbidden is None else to_numpy(forbidden)
    start = np.zeros(len(photons) + 1, dtype=np.int64)
    twin.count_kept(photons.start, photons.pixel, place, allowed, start[1:])
    np.cumsum(start, out=start)
    new_pixel = np.empty(int(start[-1]), dtype=np.int32)
    new_count = np.empty(len(new_pixel), dtype=photons.count.dtype)
    sums = np.empty((3, len(photons)))
    given = photons.start, photons.pixel, photons.count, place, allowed, n_scored
    twin.put_over(*given, start, new_pixel, new_count, sums)
    return SparsePhotons(start, new_pixel, new_count, len(pixels)), (sums[0], sums[1], sums[2])


def _refuse(patterns: Patterns, bad: Array, is_signal: bool) -> None:
    if bool(bad.any()):
        event = int(patterns.event_id[int(bad.argmax())])
        what = "a value that is not a finite number" if is_signal else "a negative count"
        raise OrienteerError(
            f"event {event} has {what} in a pixel that is used.", "Mask that pixel, or leave the frame out."
        )


def _refuse_signal(is_signal: bool) -> None:
    if is_signal:
        raise OrienteerError(
            "the frames hold signal, not photon counts, and cannot be stored as lists of photons.",
            "Use the dense layout for them.",
        )


def _storage(largest: float, is_signal: bool, device: DeviceName, compact: bool) -> Any:
    """The smallest type that holds the values exactly; on the GPU float16 if it does, unless ``compact``."""
    if is_signal or largest >= 1 << 16:
        return np.float32
    if device == "cuda" and not compact and largest <= LARGEST_HALF_COUNT:
        return np.float16
    return np.uint8 if largest < 1 << 8 else np.uint16


def _sums_of_dense(dense: Array, n_scored: int) -> Sums:
    """Sums of each frame in bounded memory."""
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


def _sums_of_photons(photons: SparsePhotons, n_scored: int) -> Sums:
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
