"""The volume that a particle fills, from its density: one definition for phased and for true densities.

The support is where a density may differ from 0; it must contain everything that the data show, faint rims
included.  The volume that a particle fills is smaller, and for a soft particle a matter of definition.  Here
a voxel is filled if the density, without waves finer than the edge of the data, is above a tenth of its
typical value: the mean weighted by the density itself, which is the density of most of the matter.
"""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.phase.half_grid import density_of, radii, transform_of

SHARE = 0.1


def typical_density(density: Array) -> float:
    """The mean of the positive density weighted by itself; 0 if there is none.

    >>> typical_density(np.array([1.0, 1.0, 0.0, -0.2]))
    1.0
    """
    xp = array_namespace(density)
    matter = xp.maximum(density, 0).astype(xp.float64)
    total = float(matter.sum())
    return float((matter**2).sum()) / total if total > 0 else 0.0


def filled_voxels(density: Array, measured: Array) -> Array:
    """The voxels that a density (n, n, n) fills at the resolution of the data, (n, n, n) bool.

    measured : (n, n, n // 2 + 1) bool; the outermost of these voxels is the edge of the data.
    """
    xp = array_namespace(density)
    radius = xp.asarray(radii(density.shape[-1]))
    seen = density_of(xp.where(radius <= radius[measured].max(), transform_of(density), 0))
    typical = typical_density(seen)
    return seen > (SHARE * typical if typical > 0 else np.inf)
