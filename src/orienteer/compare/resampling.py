"""A density on another grid, by its Fourier series: exact for all frequencies that both grids can represent.

Between its voxels, a density is the trigonometric polynomial through them.  That polynomial is evaluated on
the new grid, without frequencies too high for the new voxels; outside the old box the result is 0.  Each axis
takes one product with a small matrix, on CPU and GPU alike.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError


def resample(values: Array, voxel_size: ArrayLike, new_n: int, new_voxel_size: float) -> Array:
    """The density in a cube of other voxels; on both grids the centre voxel n // 2 is the origin.

    values : (n_x, n_y, n_z) real without NaN.
    voxel_size : edges of a voxel, one number or three; new_voxel_size : edge of a new one, in the same unit.

    Returns (new_n, new_n, new_n) float64 on the same device.

    >>> wave = np.cos(2 * np.pi * np.arange(-4, 4) / 8)
    >>> cube = wave[:, None, None] * np.ones((8, 8, 8))
    >>> resample(cube, 2.0, 8, 1.0)[:, 4, 4].round(4)
    array([0.    , 0.3827, 0.7071, 0.9239, 1.    , 0.9239, 0.7071, 0.3827])
    """
    if values.ndim != 3:
        raise OrienteerError(f"a volume must have three axes; this one has the shape {tuple(values.shape)}.")
    steps = np.broadcast_to(np.asarray(voxel_size, np.float64), (3,)).tolist()
    if new_n < 1 or not all(0 < step < np.inf for step in steps) or not 0 < new_voxel_size < np.inf:
        raise OrienteerError(
            f"there is no grid of {new_n} voxels of {new_voxel_size}, to be made from voxels of {steps}: "
            "all must be positive."
        )
    xp = array_namespace(values)
    result = xp.astype(values, xp.float64)
    for axis in range(3):
        matrix = xp.asarray(series_matrix(values.shape[axis], steps[axis], new_n, new_voxel_size))
        result = xp.moveaxis(xp.tensordot(matrix, result, axes=((1,), (axis,))), 0, axis)
    return xp.ascontiguousarray(result)


def series_matrix(n: int, voxel_size: float, new_n: int, new_voxel_size: float) -> NDArray[np.float64]:
    """The matrix that takes values on an axis of n voxels to those on the new axis, (new_n, n) float64."""
    length = n * voxel_size
    # Waves must be at least two voxels long; the tolerance keeps all of them if the grids are equal.
    highest = min(n / 2, length / (2 * new_voxel_size)) * (1 + 1e-9)
    place = (np.arange(new_n) - new_n // 2) * new_voxel_size
    away = (place[:, None] - (np.arange(n) - n // 2) * voxel_size) / length
    matrix = np.full((new_n, n), 1.0)
    for k in range(1, int(highest) + 1):
        # The wave of two voxels of the old grid (the Nyquist frequency) is its own mate.
        matrix += (1 if 2 * k == n else 2) * np.cos(2 * np.pi * k * away)
    edge = length / 2 * (1 + 1e-9)
    matrix[np.abs(place) > edge] = 0
    return matrix / n
