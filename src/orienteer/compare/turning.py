"""Sample a volume at turned points, by splines, and turn a whole volume."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orienteer.compare.shells import OUTSIDE, radial_mean, shell_index
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import normalise, to_matrix
from orienteer.slicing.trilinear import slice_volume

LINEAR, CUBIC = 1, 3
# Points sampled at once on the GPU: their coordinates take 24 bytes each.
_POINTS_AT_A_TIME = 2**24


def spline_coefficients(values: Array, order: int) -> Array:
    """The array that :func:`sample` needs: the values themselves, or the coefficients of cubic splines.

    values : (n, n, n) float32 or float64 without NaN.
    """
    if order == LINEAR:
        return values
    return image_functions(values).spline_filter(values, order=order, mode="mirror", output=values.dtype)


def sample(coefficients: Array, points: Array, matrices: Array, order: int) -> Array:
    """The spline at ``matrices[k] @ points[p]``, (K, P); the centre voxel n // 2 is the origin.

    Linear splines are float32, and 0 outside the cube; cubic ones have the dtype of the coefficients.

    coefficients : (n, n, n) of :func:`spline_coefficients`.
    points : (P, 3) float64 in voxels; matrices : (K, 3, 3) float64.
    """
    xp = array_namespace(coefficients)
    if order == LINEAR:
        return slice_volume(coefficients, xp.asarray(points), xp.asarray(matrices))
    n = coefficients.shape[0]
    points, matrices = xp.asarray(points), xp.asarray(matrices)
    out = xp.empty((len(matrices), len(points)), dtype=coefficients.dtype)
    if not is_on_gpu(coefficients):
        from orienteer.compare._spline_numba import sample_cubic

        sample_cubic(coefficients, points, matrices, out)
        return out
    step = max(1, _POINTS_AT_A_TIME // max(1, len(points)))
    for first in range(0, len(matrices), step):
        turned = xp.matmul(matrices[first : first + step], points.T)  # (k, 3, P)
        coordinates = xp.reshape(xp.permute_dims(turned, (1, 0, 2)), (3, -1)) + n // 2
        found = image_functions(coefficients).map_coordinates(
            coefficients, coordinates, order=order, mode="mirror", prefilter=False, output=out.dtype
        )
        out[first : first + step] = xp.reshape(found, (-1, len(points)))
    return out


def rotate_volume(values: Array, quaternion: ArrayLike, order: int = CUBIC) -> Array:
    """The turned volume (n, n, n), whose value at r' = R r is that of the given volume at r.

    The centre voxel n // 2 stays.  NaN (never measured) turns with the rest; corners of the result that come
    from outside the given cube are NaN, too.

    values : (n, n, n) real, on the CPU or the GPU.
    quaternion : (4,), scalar first.
    order : 1 interpolates linearly; 3 by cubic splines, which blur far less.
    """
    xp = array_namespace(values)
    if values.ndim != 3 or len(set(values.shape)) != 1:
        raise OrienteerError(f"only a cube (n, n, n) can be turned, not the shape {tuple(values.shape)}.")
    dtype = xp.float64 if values.dtype == xp.float64 else xp.float32
    values = xp.astype(values, dtype)
    n = values.shape[0]
    axis = xp.arange(n, dtype=xp.float64) - n // 2
    points = xp.stack([xp.reshape(x, (-1,)) for x in xp.meshgrid(axis, axis, axis, indexing="ij")], axis=1)
    back = to_matrix(normalise(quaternion)).T
    coefficients = spline_coefficients(filled(values), order)
    turned = xp.reshape(sample(coefficients, points, back[None], order), values.shape)
    known = xp.ones(values.shape, dtype=bool)
    for row in back:  # the place that each voxel comes from, along each axis
        source = row[0] * axis[:, None, None] + row[1] * axis[:, None] + row[2] * axis + n // 2
        known = known & (source > -0.5) & (source < n - 0.5)
    missing = xp.isnan(values)
    if bool(xp.any(missing)):
        share = sample(xp.astype(missing, dtype), points, back[None], LINEAR)
        known = known & (xp.reshape(share, values.shape) < 0.5)
    return xp.where(known, turned, xp.asarray(np.nan, dtype=dtype))


def filled(values: Array) -> Array:
    """The cube with every NaN replaced by the mean of its shell, or by 0 if the shell has none."""
    xp = array_namespace(values)
    missing = xp.isnan(values)
    if not bool(xp.any(missing)):
        return values
    index = shell_index(values.shape[0])
    means = np.nan_to_num(radial_mean(values))
    # Beyond the last whole shell, use the mean of that shell.
    level = xp.asarray(np.append(means, means[-1])[np.where(index == OUTSIDE, len(means), index)])
    return xp.where(missing, xp.astype(level, values.dtype), values)


def image_functions(values: Array) -> Any:
    """``scipy.ndimage``, or its equivalent on the GPU."""
    if is_on_gpu(values):
        import cupyx.scipy.ndimage as functions
    else:
        import scipy.ndimage as functions
    return functions
