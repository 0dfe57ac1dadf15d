"""Sums over the pixels of every shot, and over shots for every pixel: the two passes of hit finding."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.kernels import load_kernels
from orienteer.source.patterns import Patterns
from orienteer.source.sparse_photons import SparsePhotons

_THREADS = 256
# Types of frames that the CUDA kernels read directly; others are converted to float32 or int32.
_ON_GPU = ("uint8", "uint16", "int32", "float32")


@dataclass(frozen=True)
class PixelSums:
    """Sums over the used pixels of each of N shots.

    photons : (N,) int64, or float64 if frames are a float signal.
    n_lit : (N,) int32, number of pixels with at least ``lit_from`` photons.
    weighted : (N,) float64, Σ w K.
    """

    photons: NDArray[Any]
    n_lit: NDArray[np.int32]
    weighted: NDArray[np.float64]


def sum_pixels(
    patterns: Patterns,
    used: NDArray[np.bool_],
    lit_from: NDArray[np.float32],
    weight: NDArray[np.float32],
) -> PixelSums:
    """The sums over pixels of every shot, on the device of the frames; used, lit_from and weight are (P,)."""
    from orienteer.hits import _photon_sums_numba as numba_twin

    frames, n = patterns.without_forbidden().frames, len(patterns)
    kind = "i" if isinstance(frames, SparsePhotons) else frames.dtype.kind
    photons = np.zeros(n, np.float64 if kind == "f" else np.int64)
    n_lit, weighted = np.zeros(n, np.int32), np.zeros(n, np.float64)
    of_pixels = (used.view(np.uint8), lit_from, weight)
    if isinstance(frames, SparsePhotons):
        lists = (to_numpy(frames.start), to_numpy(frames.pixel), to_numpy(frames.count))
        numba_twin.sum_listed_pixels(*lists, *of_pixels, photons, n_lit, weighted)
    elif is_on_gpu(frames):
        return _on_gpu(frames, of_pixels)
    elif kind == "f":
        numba_twin.sum_pixels_of_signal(frames, *of_pixels, photons, n_lit, weighted)
    else:
        numba_twin.sum_pixels(frames, *of_pixels, photons, n_lit, weighted)
    return PixelSums(photons, n_lit, weighted)


def add_frames(patterns: Patterns, factor: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Add Σ_d factor[d] K to ``sums`` (P,); factor is (N,), and frames whose factor is 0 are not read."""
    from orienteer.hits import _photon_sums_numba as numba_twin

    if not factor.any():
        return
    frames = patterns.without_forbidden().frames
    if isinstance(frames, SparsePhotons):
        lists = (to_numpy(frames.start), to_numpy(frames.pixel), to_numpy(frames.count))
        numba_twin.sum_listed_frames(*lists, factor, sums)
    elif is_on_gpu(frames):
        frames, name = _for_kernel(frames)
        xp = array_namespace(frames)
        D, P = frames.shape
        added = xp.zeros(P, dtype=np.float64)
        kernel = load_kernels(Path(__file__).with_suffix(".cu")).get_function(f"sum_frames_{name}")
        grid = (-(-P // _THREADS),)
        kernel(grid, (_THREADS,), (frames, xp.asarray(factor), np.int32(D), np.int32(P), added))
        sums += to_numpy(added)
    else:
        numba_twin.sum_frames(frames, factor, sums)


def _on_gpu(frames: Array, of_pixels: tuple[NDArray[Any], ...]) -> PixelSums:
    frames, name = _for_kernel(frames)
    xp = array_namespace(frames)
    D, P = frames.shape
    sums = xp.empty((3, D), dtype=np.float64)
    kernel = load_kernels(Path(__file__).with_suffix(".cu")).get_function(f"sum_pixels_{name}")
    kernel((D,), (_THREADS,), (frames, *map(xp.asarray, of_pixels), np.int32(D), np.int32(P), sums))
    photons, n_lit, weighted = to_numpy(sums)
    return PixelSums(
        photons if name == "float32" else photons.astype(np.int64), n_lit.astype(np.int32), weighted
    )


def _for_kernel(frames: Array) -> tuple[Array, str]:
    name = str(frames.dtype)
    if name not in _ON_GPU:
        name = "float32" if frames.dtype.kind == "f" else "int32"
    return array_namespace(frames).ascontiguousarray(frames, dtype=name), name
