"""Slices of a volume at many orientations, and the adjoint: checks the arguments and picks the twin.

A row k is an orientation, a point p a pixel.  The sample of row k at pixel p lies at
``matrices[k] @ points[p]`` in voxels from the centre voxel n // 2; for a particle turned by R the matrix
is the transpose of R.
"""

from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import OrienteerError
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.sums import CpuSums, GpuSums


def slice_volume(
    volume: Array,
    points: Array | PointPatches,
    matrices: Array,
    by_pixel: bool = False,
    out: Array | None = None,
) -> Array:
    """Trilinear samples of a volume on rotated points: the expected pattern of each orientation.

    volume : (n, n, n) float32, NumPy or CuPy, which picks the twin.
    points : (P, 3) in voxels from the centre, or :class:`PointPatches` of them (sort once, use often).
    matrices : (K, 3, 3), the transposes of the rotations of the particle.
    by_pixel : whether the result is (P, K) instead of (K, P).
    out : float32 array for the result.

    Returns (K, P) or (P, K) float32.  A point outside the cube, or one with NaN, gives 0.

    >>> ramp = np.broadcast_to(np.arange(5, dtype=np.float32)[:, None, None], (5, 5, 5))
    >>> slice_volume(ramp, np.array([[0.5, 1, 1], [0, 0, 3]]), np.eye(3)[None])
    array([[2.5, 0. ]], dtype=float32)
    """
    n = _edge_of_cube(volume.shape, "volume")
    xp = array_namespace(volume)
    volume = xp.ascontiguousarray(xp.asarray(volume, dtype=xp.float32))
    patches, matrices = _prepared(xp, points, volume), _checked_matrices(xp, matrices)
    shape = (len(patches), len(matrices)) if by_pixel else (len(matrices), len(patches))
    if out is None:
        out = xp.empty(shape, dtype=xp.float32)
    elif out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise OrienteerError(
            f"out is {out.dtype} of shape {out.shape}; it must be contiguous float32 of shape {shape}."
        )
    if is_on_gpu(volume):
        from orienteer.slicing import gpu

        gpu.slice_volume(volume, patches, matrices, by_pixel, out)
    else:
        from orienteer.slicing import _trilinear_numba as twin

        _refuse_large(n)
        twin.slice_volume(volume, patches.given, matrices, by_pixel, out)
    return out


def insert_slices(
    sums: Array | CpuSums | GpuSums,
    points: Array | PointPatches,
    matrices: Array,
    values: Array,
    row_weights: Array | None,
    pixel_weights: Array | None,
    by_pixel: bool = False,
    weights: Array | None = None,
    model: Array | None = None,
) -> None:
    """Put slices back where they were taken: the exact adjoint of :func:`slice_volume`.

    Adds f * values[k, p] to ``sums[..., 0]`` and f * row_weights[k] * pixel_weights[p] to ``sums[..., 1]``,
    where f are the trilinear weights of the sample.  The volume is the quotient of both sums over all rows.

    sums : from :func:`make_sums`; or a plain (n, n, n, 2) array, float64 in NumPy, float32 in CuPy.
    points, matrices : as in :func:`slice_volume`.
    values : (K, P), or (P, K) when ``by_pixel``.
    row_weights : (K,); a row of weight 0 is neither read nor added.  May be None when ``weights`` is given.
    pixel_weights : (P,); may be None when ``weights`` is given.
    weights : in the shape of ``values``; replaces the outer product.
    model : (n, n, n) float32; its slices, times the weights, are subtracted from the values before they are
        added.

    On the CPU, the number of threads does not change a bit of the result.
    """
    array: Array = sums.single if isinstance(sums, CpuSums) else sums
    on_gpu = isinstance(sums, GpuSums) or is_on_gpu(sums)
    n = sums.n if isinstance(sums, GpuSums) else _edge_of_cube(array.shape[:-1], "sums")
    xp = array_namespace(values)
    if is_on_gpu(values) != on_gpu:
        raise OrienteerError("sums and values must lie on the same device.")
    patches, matrices = _prepared(xp, points, values), _checked_matrices(xp, matrices)
    K, P = len(matrices), len(patches)
    shape = (P, K) if by_pixel else (K, P)
    values = _checked(xp, values, shape, "values")
    if weights is not None:
        weights = _checked(xp, weights, shape, "weights")
        row_weights = xp.ones(K, dtype=xp.float32) if row_weights is None else row_weights
        pixel_weights = xp.ones(P, dtype=xp.float32) if pixel_weights is None else pixel_weights
    row_weights = _checked(xp, row_weights, (K,), "row_weights")
    pixel_weights = _checked(xp, pixel_weights, (P,), "pixel_weights")
    if model is not None:
        model = _checked(xp, model, (n, n, n), "model")
    if on_gpu:
        from orienteer.slicing import gpu

        gpu.insert_slices(
            sums, n, patches, matrices, values, row_weights, pixel_weights, weights, by_pixel,
            model=model,
        )  # fmt: skip
        return
    is_plain = not isinstance(sums, CpuSums)
    if is_plain and (array.shape[-1] != 2 or array.dtype != np.float64 or not array.flags.c_contiguous):
        raise OrienteerError(
            f"sums are {array.dtype} of shape {array.shape}; they must be contiguous float64 (n, n, n, 2).",
            "Make them with make_sums(n, device).",
        )
    from orienteer.slicing import _insert_numba as twin

    _refuse_large(n)
    patches = patches.with_balls()
    none = np.zeros((0, 0), np.float32)
    single = CpuSums.around(array) if not isinstance(sums, CpuSums) else sums
    single.expect_rows(K)
    twin.insert_slices(
        single.single, patches.coordinates, patches.order, patches.centres, patches.radii, matrices,
        values, row_weights, pixel_weights, none if weights is None else weights,
        none if model is None else model, by_pixel, _slab_count(n),
    )  # fmt: skip
    if single is not sums:
        single.finish()


def _slab_count(n: int) -> int:
    """Number of slabs of the sums: one for each of up to two threads; two for each of more threads.

    Of more threads, each takes a slab near the middle and one off it.
    """
    from numba import get_num_threads

    threads = int(get_num_threads())
    return min(n, threads if threads <= 2 else 2 * threads)


def _edge_of_cube(shape: tuple[int, ...], name: str) -> int:
    if len(shape) != 3 or len(set(shape)) != 1 or shape[0] < 2:
        raise OrienteerError(f"{name} must be a cube of two voxels or more along each edge, not {shape}.")
    return int(shape[0])


def _refuse_large(n: int) -> None:
    if n > 1290:  # n^3 must be an int32
        raise OrienteerError(
            f"a cube of {n}^3 voxels is too large to be sliced; 1290 is the limit.",
            "Ask for a coarser resolution (resolution_A), or fewer voxels across a speckle (oversampling).",
        )


def _prepared(xp: Any, points: Array | PointPatches, beside: Array) -> PointPatches:
    if isinstance(points, PointPatches):
        return points.to("cuda" if is_on_gpu(beside) else "cpu")
    return PointPatches.as_given(xp.asarray(points))


def _checked_matrices(xp: Any, matrices: Array) -> Array:
    if matrices.ndim != 3 or matrices.shape[1:] != (3, 3):
        raise OrienteerError(f"matrices have the shape {matrices.shape}; they must be (K, 3, 3).")
    return xp.ascontiguousarray(xp.asarray(matrices, dtype=xp.float32))


def _checked(xp: Any, array: Array | None, shape: tuple[int, ...], name: str) -> Array:
    if array is None or array.shape != shape:
        found = "nothing" if array is None else f"shape {array.shape}"
        raise OrienteerError(f"{name} must have the shape {shape}, but {found} was given.")
    return xp.ascontiguousarray(xp.asarray(array, dtype=xp.float32))
