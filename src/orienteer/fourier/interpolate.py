"""Interpolation from a corrected grid at rotated points: checks the arguments and picks the twin."""

from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, is_on_gpu
from orienteer.compute.kernels import load_kernels

_THREADS = 256


def interpolate_field(
    grid: Array, coefficients: Array, points: Array, matrices: Array, origin: float, limit: float, out: Array,
    *, order: Array | None = None, paired: bool = False,
) -> None:  # fmt: skip
    """Write the complex value of the function at ``matrices[k] @ points[k or 0, p]`` into ``out``.

    grid : (m, m, row) complex64, row even; NumPy or CuPy, and it picks the twin.
    coefficients : (degree + 1, width) float32, from :class:`InterpolationKernel`.
    points : (1 or K, P, 3) float64.
    matrices : (K, 3, 3) float64 that lead to grid cells (1 / spacing folded in).
    origin : added to each coordinate in cells, so that its whole part is the index of the first tap.
    limit : largest squared length in cells; what lies beyond is NaN.
    out : (K, P) complex64.
    order, paired : on the GPU only, see ``interpolate.cu``; they change the speed, not the result.
    """
    if is_on_gpu(grid):
        arguments = _device_arguments(grid, coefficients, points, matrices, origin, limit, order, out)
        _launch("field", coefficients.shape, paired, out, (*arguments, out))
        return
    from orienteer.fourier._interpolate_numba import compiled_kernels

    field, _ = compiled_kernels(coefficients.shape[1], coefficients.shape[0] - 1)
    field(grid.view(np.float32), coefficients, points, matrices, origin, limit, out)


def interpolate_intensity(
    grid: Array, coefficients: Array, points: Array, matrices: Array, origin: float, limit: float,
    scale: Array, weights: Array, out: Array,
    *, add: bool = False, order: Array | None = None, paired: bool = False,
) -> None:  # fmt: skip
    """Write (or add) weights[k] * scale[k or 0, p] * |F|^2 into ``out`` (K, P) float32; the rest as above.

    scale : (1 or K, P) float32.
    weights : (K,) float32.
    """
    if is_on_gpu(grid):
        arguments = _device_arguments(grid, coefficients, points, matrices, origin, limit, order, out)
        tail = (scale, np.int32(len(scale) > 1), weights, np.int32(add), out)
        _launch("intensity", coefficients.shape, paired, out, (*arguments, *tail))
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
        grid, np.int32(grid.shape[0]), np.int32(grid.shape[2]), coefficients,
        points, np.int32(len(points) > 1), matrices, np.float64(origin), np.float64(limit),
        np.uintp(0) if order is None else order, np.int32(n_pixels), np.int32(tiles),
    )  # fmt: skip


def _launch(
    name: str, coefficient_shape: tuple[int, int], paired: bool, out: Array, arguments: tuple[Any, ...]
) -> None:
    options = [f"-DWIDTH={coefficient_shape[1]}", f"-DDEGREE={coefficient_shape[0] - 1}"]
    module = load_kernels(Path(__file__).with_name("interpolate.cu"), (*options, *["-DPAIRED"] * paired))
    tiles = (out.shape[1] + _THREADS - 1) // _THREADS
    if out.size:
        module.get_function(name)((tiles * out.shape[0],), (_THREADS,), arguments)
