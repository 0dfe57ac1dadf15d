"""Friedel symmetry: the intensity of a real density is the same at q and at -q."""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array


def friedel_symmetrise(values: Array) -> Array:
    """The mean of an intensity (..., n_x, n_y, n_z) and its point reflection through the centre voxel n // 2.

    Along an axis of even length the first plane has no mate inside the box; voxels there stay as they are.
    Leading axes, such as one of several models, are treated one by one.

    >>> import numpy as np
    >>> friedel_symmetrise(np.arange(4.0).reshape(1, 1, 4))
    array([[[0., 2., 2., 2.]]])
    """
    inside = (..., *(slice(1 - n % 2, None) for n in values.shape[-3:]))
    result = values.copy()
    result[inside] = (values[inside] + values[inside][..., ::-1, ::-1, ::-1]) / 2
    return result


def friedel_completed(cube: NDArray[np.float64]) -> NDArray[np.float64]:
    """An intensity (n, n, n) completed from its Friedel mates, on a cube of odd edge n or n + 1.

    If a voxel and its mate are both known, each becomes their mean; if one is NaN, it becomes the other.  In
    a cube of even edge, planes without a mate get one on the other side.

    >>> friedel_completed(np.array([[[1.0, np.nan, 3.0]]]).repeat(3, 0).repeat(3, 1))[0, 0]
    array([ 2., nan,  2.])
    """
    if len(cube) % 2 == 0:
        cube = np.pad(cube, (0, 1), constant_values=np.nan)
    mates = cube[::-1, ::-1, ::-1]
    both = (cube + mates) / 2
    return np.where(np.isfinite(both), both, np.where(np.isfinite(cube), cube, mates))
