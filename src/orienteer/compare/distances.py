"""Distances of the voxels of a cube, or of half of one, from the voxel at which its axes are 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Places along an axis in any unit; distances are in the same unit.
Axis = NDArray[np.floating[Any]]


def centred_axis(n: int, step: float = 1.0) -> NDArray[np.float64]:
    """Places of n voxels along an axis whose origin is the voxel n // 2.

    >>> centred_axis(4, 0.5)
    array([-1. , -0.5,  0. ,  0.5])
    """
    return np.asarray((np.arange(n) - n // 2) * step, dtype=np.float64)


def squared_distances(axis: Axis, last: Axis | None = None) -> NDArray[np.float64]:
    """Squared distances, (n, n, n) float64, in a cube with the places ``axis`` (n,) along all three axes.

    last : (m,) other places along the third axis; the result is then (n, n, m).
    """
    square = axis**2
    return np.asarray(square[:, None, None] + square[:, None] + (square if last is None else last**2))


def distances(axis: Axis, last: Axis | None = None) -> NDArray[np.float64]:
    """Distances, (n, n, n) float64 or (n, n, m); arguments as of :func:`squared_distances`.

    >>> distances(centred_axis(3))[:, 1, 1]
    array([1., 0., 1.])
    """
    return np.sqrt(squared_distances(axis, last))
