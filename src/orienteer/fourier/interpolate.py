"""Interpolation from a corrected grid at rotated points: checks the arguments and picks the twin."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, is_on_gpu
from orienteer.compute.kernels import load_kernels

_THREADS = 256
_PATCH = (4, 8)  # pixels of a warp of 32 threads


def patch_order(pixels: NDArray[np.int64], frame_shape: tuple[int, ...]) -> NDArray[np.int32] | None:
    """Indices of the points, sorted such that 32 consecutive ones fill a patch of 4 x 8 pixels of the frame.

    Neighbours on a detector are neighbours in the grid, and a warp over a patch reads fewer cache lines than
    one over a line (a fifth faster on an H200).  None for frames without rows.

    pixels : (P,) places of the points in the flattened frame; any may be missing.
    frame_shape : shape of a frame; the axes before the last are taken as one.

    >>> patch_order(np.arange(2 * 10), (2, 10))
    array([ 0,  1,  2,  3,  4,  5,  6,  7, 10, 11, 12, 13, 14, 15, 16, 17,  8,
            9, 18, 19], dtype=int32)
    """
    if len(frame_shape) < 2:
        return None
    row, column = np.divmod(pixels, frame_shape[-1])
    patch_row, patch_column = row // _PATCH[0], column // _PATCH[1]
    return np.lexsort((column, row, patch_column, patch_row)).astype(np.int32)


def interpolate_field(
    grid: Array, coefficients: Array, points: Array, matrices: Array, origin: float, limit: float, out: Array,
    *, order: Array | None = None,
) -> None:  # fmt: skip
    """Write the complex value of the function at ``matrices[k] @ points[k or 0, p]`` into ``out``.

    grid : (m, m, m) complex64; NumPy or CuPy, which picks the twin.
    coefficients : (degree + 1, width) float32, from :class:`InterpolationKernel`.
    points : (1 or K, P, 3) float64.
    matrices : (K, 3, 3) float64 that lead to grid cells (1 / spacing folded in).
    origin : added to each coordinate in cells, so that its whole part is the index of the first tap.
    limit : largest squared length in cells; points beyond it give NaN.
    out : (K, P) complex64.
    order : (P,) int32, the pixel of each thread of the GPU (:func:`patch_order`); it changes the speed only.
    """
    if is_on_gpu(grid):
        arguments = _device_arguments(grid, coefficients, points, matrices, origin, limit, order, out)
        _launch("field", coefficients.shape, out, (*arguments, out))
        return
    from orienteer.fourier._interpolate_numba import compiled_kernels

    field, _ = compiled_kernels(coefficients.shape[1], coefficients.shape[0] - 1)
    field(grid.view(np.float32), coefficients, points, matrices, origin, limit, out)


def interpolate_intensity(
    grid: Array, coefficients: Array, points: Array, matrices: Array, origin: float, limit: float,
    scale: Array, weights: Array, out: Array,
    *, add: bool = False, order: Array | None = None,
) -> None:  # fmt: skip
    """Write (or add) weights[k] * scale[k or 0, p] * |F|^2 into ``out`` (K, P) float32; the rest as above.

    scale : (1 or K, P) float32.
    weights : (K,) float32.
    """
    if is_on_gpu(grid):
        arguments = _device_arguments(grid, coefficients, points, matrices, origin, limit, order, out)
        tail = (scale, np.int32(len(scale) > 1), weights, np.int32(add), out)
        _launch("intensity", coefficients.shape, out, (*arguments, *tail))
        return
    from orienteer.fourier._interpolate_numba import compiled_kernels

    _, intensity = compiled_kernels(coefficients.shape[1], coefficients.shape[0] - 1)
    intensity(grid.view(np.float32), coefficients, points, matrices, origin, limit, scale, weights, add, out)


def _device_arguments(
    grid: Array, coefficients: Array, points: Array, matrices: Array, origin: float, limit: float,
    order: Array | None, out: Array,
) -> tuple[Any, ...]:  # fmt: skip
    n_pixels = out.shape[1]
    tiles = (n_pixels + _THREADS - 1) // _THREADS
    return (
        grid, np.int32(len(grid)), coefficients,
        points, np.int32(len(points) > 1), matrices, np.float64(origin), np.float64(limit),
        np.uintp(0) if order is None else order, np.int32(n_pixels), np.int32(tiles),
    )  # fmt: skip


def _launch(name: str, coefficient_shape: tuple[int, int], out: Array, arguments: tuple[Any, ...]) -> None:
    options = (f"-DWIDTH={coefficient_shape[1]}", f"-DDEGREE={coefficient_shape[0] - 1}")
    module = load_kernels(Path(__file__).with_name("interpolate.cu"), options)
    tiles = (out.shape[1] + _THREADS - 1) // _THREADS
    if out.size:
        module.get_function(name)((tiles * out.shape[0],), (_THREADS,), arguments)
