"""Launches ``trilinear.cu`` and ``insert.cu`` with the arguments of their CPU twins, already checked."""

from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, import_cupy
from orienteer.compute.kernels import load_kernels
from orienteer.errors import OrienteerError
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import GpuSums

_THREADS = 256
_LARGEST = 1024  # n^3 and the number of quads must fit into int32


def slice_volume(
    volume: Array, patches: PointPatches, matrices: Array, by_pixel: bool, out: Array,
    *, quads: bool = True, rows: int = 16,
) -> None:  # fmt: skip
    """Write the samples into ``out``.

    quads : whether a copy with four neighbours per voxel is made first: a sample then takes two loads, not 8.
    rows : orientations per thread.
    """
    n = len(volume)
    _refuse_large(n)
    module = _module("trilinear.cu", QUADS=int(quads), ROWS=rows)
    volume = _quads(volume) if quads else volume
    before = (volume, np.int32(n), patches.coordinates, patches.order, matrices)
    _launch(module, "slice_volume", len(matrices), len(patches), rows, before, (np.int32(by_pixel), out))


def insert_slices(
    sums: GpuSums | Array, n: int, patches: PointPatches, matrices: Array, values: Array,
    row_weights: Array, pixel_weights: Array, weights: Array | None, by_pixel: bool,
    *, model: Array | None = None, rows: int = 16,
) -> None:  # fmt: skip
    """Add slices to ``GpuSums`` or to a plain (n, n, n, 2) float32 array, ``rows`` orientations a thread.

    model : (n, n, n) float32 whose slices, times the weights, are subtracted from the values; or None.
    """
    _refuse_large(n)
    scales = (1.0, 1.0)
    if isinstance(sums, GpuSums):
        sums.expect_rows(len(matrices))
        form, array = (64, sums.fixed) if sums.deterministic else (8, sums.sectors)
        if sums.deterministic:
            of_values, of_weights = _magnitudes(values, row_weights, pixel_weights, weights, by_pixel)
            if model is not None:
                of_values += of_weights * float(abs(model).max())
            exponents = sums.expect_magnitudes(of_values, of_weights)
            scales = (float(np.ldexp(1.0, exponents[0])), float(np.ldexp(1.0, exponents[1])))
    else:
        form, array = 2, sums
        if sums.shape != (n, n, n, 2) or sums.dtype != np.float32 or not sums.flags.c_contiguous:
            raise OrienteerError(
                f"sums are a {sums.dtype} array of shape {sums.shape}; "
                "on the GPU they must be contiguous float32 (n, n, n, 2).",
                "Make them with make_sums(n, device).",
            )
    module = _module("insert.cu", FORM=form, QUADS=1, ROWS=rows)
    before = (
        array, np.int32(n), patches.coordinates, patches.order, matrices, values,
        row_weights, pixel_weights, np.uintp(0) if weights is None else weights,
        np.uintp(0) if model is None else _quads(model),
    )  # fmt: skip
    after = (np.int32(by_pixel), np.float64(scales[0]), np.float64(scales[1]))
    _launch(module, "insert_slices", len(matrices), len(patches), rows, before, after)


def _quads(volume: Array) -> Array:
    """(n, n, n, 4) float32, every voxel with its neighbours along y and z."""
    cupy: Any = import_cupy()
    n = len(volume)
    quads = cupy.empty((n, n, n, 4), np.float32)
    kernel = _module("trilinear.cu", QUADS=1, ROWS=16).get_function("make_quads")
    kernel(((n**3 + _THREADS - 1) // _THREADS,), (_THREADS,), (volume, np.int32(n), quads))
    return quads


def _magnitudes(
    values: Array, row_weights: Array, pixel_weights: Array, weights: Array | None, by_pixel: bool
) -> tuple[float, float]:
    """Sums of the magnitudes of values and of weights over the rows that have weight."""
    cupy: Any = import_cupy()
    used = cupy.flatnonzero(row_weights)
    axis = 1 if by_pixel else 0

    def total(array: Array) -> float:
        return float(cupy.abs(cupy.take(array, used, axis=axis)).sum(dtype=np.float64))

    if weights is not None:
        return total(values), total(weights)
    outer = cupy.abs(row_weights).sum(dtype=np.float64) * cupy.abs(pixel_weights).sum(dtype=np.float64)
    return total(values), float(outer)


def _refuse_large(n: int) -> None:
    if n > _LARGEST:
        raise OrienteerError(
            f"a cube of {n}^3 voxels is too large to be sliced; {_LARGEST} is the limit.",
            "Ask for a coarser resolution (resolution_A), or fewer voxels across a speckle (oversampling).",
        )


def _module(file: str, **constants: int) -> Any:
    options = tuple(f"-D{name}={value}" for name, value in constants.items())
    return load_kernels(Path(__file__).with_name(file), options)


def _launch(
    module: Any, name: str, K: int, P: int, rows: int, before: tuple[Any, ...], after: tuple[Any, ...]
) -> None:
    tiles, groups = (P + _THREADS - 1) // _THREADS, (K + rows - 1) // rows
    if tiles * groups:
        arguments = (*before, np.int32(K), np.int32(P), np.int32(tiles), *after)
        module.get_function(name)((tiles * groups,), (_THREADS,), arguments)
