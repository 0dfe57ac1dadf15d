"""Friedel symmetry: the intensity of a real density is the same at q and at -q."""

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
