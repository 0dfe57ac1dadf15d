"""Transforms of relative intensities, and filters with a gain for each distance.

An intensity is the same at -q as at q.  On the CPU half of such a cube is therefore enough, the planes
x >= 0: its transform is real, and takes half of the time and of the memory.  The whole cube is used on the
GPU, and if a cube is not its own mirror image.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.compute.fast_length import fast_length
from orienteer.compute.grouped_sums import Groups
from orienteer.compute.machine import usable_cores
from orienteer.reconstruction.model.relative_intensity import by_shell, is_half, shell_numbers

# Largest difference between mirror images, relative: rounding, and nothing else.
_ROUNDING = 1e-5


def halved(cubes: Sequence[Array]) -> list[Array]:
    """The planes x >= 0 (n // 2 + 1, n, n) of cubes (n, n, n) if all have mirror images; else the cubes.

    >>> ramp = np.arange(3.0)[:, None, None] * np.ones((3, 3, 3))
    >>> [half.shape for half in halved([abs(ramp - 1)])], [whole.shape for whole in halved([ramp])]
    ([(2, 3, 3)], [(3, 3, 3)])
    """
    n = len(cubes[0])
    if n % 2 == 0 or is_on_gpu(cubes[0]):
        return list(cubes)
    from orienteer.reconstruction.model import _half_box_numba as twin

    contiguous = [np.ascontiguousarray(cube) for cube in cubes]
    if not all(twin.is_mirrored(cube, _ROUNDING) for cube in contiguous):
        return list(cubes)
    return [cube[n // 2 :] for cube in contiguous]


def whole(cube: Array) -> Array:
    """The whole cube (n, n, n), if half of it is given."""
    if not is_half(cube):
        return cube
    middle = cube[0].ravel()
    last = len(middle) // 2
    middle = np.concatenate([middle[: last + 1], middle[:last][::-1]])  # mirror images to the last bit, too
    return np.concatenate([cube[:0:-1, ::-1, ::-1], middle.reshape(1, *cube[0].shape), cube[1:]])


def transformed(cube: Array, curve: NDArray[np.float64]) -> Array:
    """The transform (m, m, m // 2 + 1) of a cube times a curve (shells + 1,), in a box of a fast size m.

    For half a cube it is float32, with the opposite sign along the first two axes; otherwise complex64.
    """
    m = fast_length(cube.shape[-1])
    if is_on_gpu(cube):
        return array_namespace(cube).fft.rfftn(cube * by_shell(curve, cube), s=(m,) * 3, axes=(0, 1, 2))
    from scipy.fft import irfftn, rfft, rfftn

    if not is_half(cube):
        return rfftn(cube * by_shell(curve, cube), s=(m,) * 3, workers=usable_cores())
    from orienteer.reconstruction.model import _half_box_numba as twin

    box = np.empty((m // 2 + 1, m, m), np.float32)
    twin.into_box(np.ascontiguousarray(cube), curve.astype(np.float32), shell_numbers(cube), box)
    along_z = rfft(box, axis=2, workers=usable_cores())
    # After z, the rest has its conjugate at -x, -y: a real transform, of which half is stored.
    return irfftn(along_z, s=(m, m), axes=(1, 0), norm="forward", workers=usable_cores(), overwrite_x=True)


def filtered(transform: Array, shares: NDArray[np.float64], gains: NDArray[np.float64], cube: Array) -> Array:
    """The filtered cube in float32, whole or half as ``cube``: a weighted sum over k gains.

    shares : (shells + 1, k), weight of each gain in every shell; gains : (k, distances).
    """
    n, m, on_gpu = cube.shape[-1], len(transform), is_on_gpu(transform)
    if not is_half(cube):
        parts = [
            by_shell(share, cube) * _kept(transform, gain)[:n, :n, :n]
            for share, gain in zip(shares.T, gains, strict=True)
        ]
        return sum(parts[1:], start=parts[0])
    from scipy.fft import irfft, rfftn

    from orienteer.reconstruction.model import _half_box_numba as twin

    total, kept = np.zeros(cube.shape, np.float32), np.empty_like(transform)
    distance = distances(m, on_gpu).reshape(m, -1)
    for share, gain in zip(shares.T, gains, strict=True):
        twin.multiply(transform.reshape(m, -1), gain.astype(np.float32), distance, kept.reshape(m, -1))
        along_z = rfftn(kept, axes=(1, 0), norm="forward", workers=usable_cores())
        box = irfft(along_z, n=m, axis=2, workers=usable_cores(), overwrite_x=True)
        twin.add_from_box(box, share.astype(np.float32), shell_numbers(cube), total)
    return total


def _kept(transform: Array, gain: NDArray[np.float64]) -> Array:
    """The box (m, m, m) float32 of a complex transform times a gain (distances,)."""
    xp, on_gpu = array_namespace(transform), is_on_gpu(transform)
    box = (len(transform),) * 3
    kept = transform * xp.asarray(gain.astype(np.float32))[distances(box[0], on_gpu)]
    if on_gpu:
        return xp.fft.irfftn(kept, s=box, axes=(0, 1, 2))
    from scipy.fft import irfftn

    return irfftn(kept, s=box, workers=usable_cores(), overwrite_x=True)


def common_sums(first: Array, second: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of the products of two transforms at each distance, (distances,), and the number of terms."""
    m, on_gpu = len(first), is_on_gpu(first)
    mates, number = _mates(m)
    if array_namespace(first).iscomplexobj(first):
        products = first.real * second.real + first.imag * second.imag
    else:
        products = first * second
    products *= array_namespace(first).asarray(mates)
    return _groups_of_distances(m, on_gpu).sums(products)[:, 0], number


@lru_cache(maxsize=2)
def _mates(m: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """How often each stored number occurs in the whole transform, (m // 2 + 1,); numbers at each distance.

    Twice, because only half of the transform is stored; but once in the first plane, and in the last of an
    even box, which hold both mates.
    """
    mates = np.full(m // 2 + 1, 2.0, dtype=np.float32)
    mates[0] = 1.0
    if m % 2 == 0:
        mates[-1] = 1.0
    distance = distances(m, False)
    weights = np.broadcast_to(mates, distance.shape)
    number = np.bincount(distance.ravel(), weights.ravel(), minlength=m // 2 + 2)
    return mates, np.asarray(number, dtype=np.float64)


@lru_cache(maxsize=2)
def _groups_of_distances(m: int, on_gpu: bool) -> Groups:
    """The numbers of a transform, grouped by distance."""
    return Groups(distances(m, on_gpu), m // 2 + 2)


@lru_cache(maxsize=2)
def distances(m: int, on_gpu: bool) -> Array:
    """Distance from the origin in voxels, rounded, (m, m, m // 2 + 1); beyond the inscribed ball one more."""
    axis: Any = np.minimum(np.arange(m), m - np.arange(m))
    square = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis[: m // 2 + 1] ** 2
    distance = np.minimum(np.rint(np.sqrt(square)).astype(np.int64), m // 2 + 1)
    return to_device(distance, "cuda" if on_gpu else "cpu")
