"""Where an autocorrelation may differ from 0: within the particle's largest distance, in pairs of voxels.

An autocorrelation is even.  With an even number of voxels along an edge, the first layers have no mates on
the other side of the centre, so they must be 0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, squared_distances
from orienteer.errors import OrienteerError


def autocorrelation_support(
    n: int, voxel_A: float = 1.0, diameter_A: float | None = None
) -> NDArray[np.bool_]:
    """Voxels (n, n, n) where the autocorrelation of a particle may differ from 0; even about n // 2.

    diameter_A : largest distance within the particle; None: unknown, the whole box.

    >>> autocorrelation_support(4)[:, 2, 2], autocorrelation_support(5, 10.0, 15.0)[:, 2, 2]
    (array([False,  True,  True,  True]), array([False,  True,  True,  True, False]))
    """
    if n < 2 or not 0 < voxel_A < np.inf:
        raise OrienteerError(
            f"{n} voxels of {voxel_A:g} A are no box for an autocorrelation: give 2 or more of positive size."
        )
    axis = centred_axis(n)
    has_mate: NDArray[Any] = np.abs(axis) <= (n - 1) // 2
    support: NDArray[np.bool_] = has_mate[:, None, None] & has_mate[:, None] & has_mate
    if diameter_A is None:
        return support
    if not diameter_A > 0:
        raise OrienteerError(f"the diameter is {diameter_A:g} A; it must be positive.")
    square = squared_distances(axis)
    return np.asarray(support & (square <= (diameter_A / voxel_A * (1 + 1e-9)) ** 2))
