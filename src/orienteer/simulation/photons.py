"""Photon counts and detector noise for (seed, shot, pixel): checks the arguments and picks CPU or GPU.

The generator has no state.  A number depends only on the seed, the event id of its frame and its pixel, so a
frame has the same photons in any batch, with any number of threads, on CPU and GPU.
"""

from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.kernels import load_kernels
from orienteer.errors import OrienteerError
from orienteer.simulation.random_streams import random_words
from orienteer.source.patterns import SparsePhotons

# Word 1 of the counter: photons use draws 0, 1, 2, ...; all other uses start far above them.
READOUT_NOISE = 1 << 28
_THREADS = 128


def generator_key(seed: int) -> tuple[int, int]:
    """The two key words of the generator, from any non-negative seed."""
    low, high = random_words(seed, "photons", 2)
    return low, high


def draw_photons(expected: Array, seed: int, event_id: Array) -> Array:
    """Poisson counts (N, P) int32 for expected photons (N, P) float32, on the same device.

    event_id : (N,) uint64; the random numbers of a frame depend on its id.

    >>> expected = np.full((2, 3), 40.0, np.float32)
    >>> counts = draw_photons(expected, seed=7, event_id=np.array([5, 6]))
    >>> bool((counts[1] == draw_photons(expected[1:], seed=7, event_id=np.array([6]))[0]).all())
    True
    """
    xp = array_namespace(expected)
    expected = xp.ascontiguousarray(expected, dtype=xp.float32)
    event_id = xp.ascontiguousarray(xp.asarray(event_id), dtype=xp.uint64)
    if expected.ndim != 2 or event_id.shape != expected.shape[:1]:
        raise OrienteerError(
            f"{event_id.shape} event ids do not fit expected photons of shape {expected.shape}.",
            "Give one event id for each row.",
        )
    out = xp.empty(expected.shape, dtype=xp.int32)
    bad = xp.zeros(len(expected), dtype=xp.int32)
    k0, k1 = generator_key(seed)
    if is_on_gpu(expected):
        _launch("draw_photons", out, (expected, event_id, np.uint32(k0), np.uint32(k1)), (out, bad))
    else:
        from orienteer.simulation import _photons_numba as twin

        twin.draw_photons(expected, event_id, np.uint64(k0), np.uint64(k1), out, bad)
    if bool(xp.any(bad)):
        event = int(to_numpy(event_id)[to_numpy(bad).argmax()])
        raise OrienteerError(
            f"event {event} has expected photons that are NaN, negative or above 1e9.",
            "Lower the fluence, or check the particle and the background.",
        )
    return out


def draw_normal(like: Array, seed: int, event_id: Array, stream: int = READOUT_NOISE) -> Array:
    """Standard normal numbers (N, P) float32 in the shape and on the device of ``like``.

    Different uses need a different ``stream``.  CPU and GPU agree to within rounding.
    """
    xp = array_namespace(like)
    event_id = xp.ascontiguousarray(xp.asarray(event_id), dtype=xp.uint64)
    out = xp.empty(like.shape, dtype=xp.float32)
    k0, k1 = generator_key(seed)
    if is_on_gpu(like):
        _launch("draw_normal", out, (event_id, np.uint32(stream), np.uint32(k0), np.uint32(k1)), (out,))
    else:
        from orienteer.simulation import _photons_numba as twin

        twin.draw_normal(event_id, np.uint64(stream), np.uint64(k0), np.uint64(k1), out)
    return out


def list_photons(counts: Array) -> SparsePhotons:
    """The lit pixels of photon counts (N, P) int32, on the same device."""
    xp = array_namespace(counts)
    counts = xp.ascontiguousarray(counts, dtype=xp.int32)
    n_frames, n_pixels = counts.shape
    lit = xp.zeros(n_frames + 1, dtype=xp.int64)
    if is_on_gpu(counts):
        _launch_per_frame("count_lit", counts, (lit[1:],))
    else:
        from orienteer.simulation import _photons_numba as twin

        twin.count_lit(counts, lit[1:])
    start = xp.cumulative_sum(lit)
    pixel, count = (xp.empty(int(start[-1]), dtype=xp.int32) for _ in range(2))
    if is_on_gpu(counts):
        _launch_per_frame("list_lit", counts, (start, pixel, count))
    else:
        twin.list_lit(counts, start, pixel, count)
    return SparsePhotons(start, pixel, count, n_pixels)


def _module() -> Any:
    return load_kernels(Path(__file__).with_name("photons.cu"), ("-fmad=false",))


def _launch(name: str, out: Array, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    n_frames, n_pixels = out.shape
    groups = (n_pixels + 3) // 4
    tiles = (groups + _THREADS - 1) // _THREADS
    if out.size:
        arguments = (*before, np.int32(n_pixels), np.int32(tiles), *after)
        _module().get_function(name)((tiles * n_frames,), (_THREADS,), arguments)


def _launch_per_frame(name: str, counts: Array, after: tuple[Any, ...]) -> None:
    if counts.size:
        _module().get_function(name)((len(counts),), (1024,), (counts, np.int32(counts.shape[1]), *after))
