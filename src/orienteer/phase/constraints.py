"""Constraints on a density: its support, that it is not negative, and its symmetry."""

from orienteer.compare.symmetrising import symmetrised
from orienteer.compare.turning import CUBIC
from orienteer.compute.arrays import Array, array_namespace
from orienteer.orientation.point_group import PointGroup


def project_support(density: Array, support: Array, positive: bool = True) -> Array:
    """The nearest densities (B, n, n, n) that are zero outside their supports and, if asked, not negative."""
    xp = array_namespace(density)
    allowed = support & (density > 0) if positive else support
    return xp.where(allowed, density, xp.asarray(0, dtype=density.dtype))


def project_symmetry(density: Array, group: PointGroup, radius: float, order: int = CUBIC) -> Array:
    """Densities (B, n, n, n) averaged over the operations of the group, around the voxel n // 2.

    radius : in voxels; beyond it, where the particle has no density, values stay as they are.
    order : of the splines between voxels; linear ones blur, but take an eighth of the time.
    """
    if group.order == 1:
        return density
    xp = array_namespace(density)
    return xp.stack([symmetrised(one, group, radius, order) for one in density])
