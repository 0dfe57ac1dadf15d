"""The volume that a particle fills, by its density: one definition for found and for true densities.

The support is where a density may be; it must hold all that the data see, faint rims included.  What a
particle fills is less, and for a soft one a matter of definition.  Here a voxel is filled where the density,
without waves finer than the edge of the data, is above a tenth of the typical density: its mean, weighed with
itself, which is the density that most of the matter has.
"""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.phase.half_grid import density_of, radii, transform_of

SHARE = 0.1


def typical_density(density: Array) -> float:
    """The density that most of the matter has; 0 where there is none.

    >>> typical_density(np.array([1.0, 1.0, 0.0, -0.2]))
    1.0
    """
    xp = array_namespace(density)
    matter = xp.maximum(density, 0).astype(xp.float64)
    total = float(matter.sum())
    return float((matter**2).sum()) / total if total > 0 else 0.0


def filled_voxels(density: Array, measured: Array) -> Array:
    """Where a density (n, n, n) fills the box at the resolution of the data, (n, n, n) bool.

    measured : (n, n, n // 2 + 1) bool; the outermost of these voxels is the edge of the data.
    """
    xp = array_namespace(density)
    radius = xp.asarray(radii(density.shape[-1]))
    seen = density_of(xp.where(radius <= radius[measured].max(), transform_of(density), 0))
    typical = typical_density(seen)
    return seen > (SHARE * typical if typical > 0 else np.inf)
