"""What is known of a density: where it may be, that it is positive, and its symmetry."""

from orienteer.compare.symmetrising import symmetrised
from orienteer.compare.turning import CUBIC
from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.point_group import PointGroup


def project_support(density: Array, support: Array, positive: bool = True) -> Array:
    """The nearest densities (B, n, n, n) that are zero outside of their supports, and not negative."""
    xp = array_namespace(density)
    allowed = support & (density > 0) if positive else support
    return xp.where(allowed, density, xp.asarray(0, dtype=density.dtype))


def project_symmetry(density: Array, group: PointGroup, radius: float, order: int = CUBIC) -> Array:
    """Densities (B, n, n, n) alike from all equivalent sides around the voxel n // 2.

    radius : in voxels; what lies beyond, where no density belongs, stays as it is.
    order : of the splines between voxels; linear ones blur, and take an eighth of the time.
    """
    if group.order == 1:
        return density
    xp = array_namespace(density)
    return xp.stack([symmetrised(one, group, radius, order) for one in density])
