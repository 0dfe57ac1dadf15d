"""Check whether two densities fit better at another size, for example because a voxel size is wrong.

A map with a wrong voxel size agrees with nothing, in any orientation.  The radii of gyration give the error
roughly; a refinement with the size as an additional unknown finds it to a per cent.
"""

from dataclasses import dataclass, replace

import numpy as np

from orienteer.compare.densities import DensityAlignment, align_densities, in_fewer_voxels
from orienteer.compare.mask import soft_mask
from orienteer.compare.moving import MovableDensity
from orienteer.compare.refinement import Placement, Refinement
from orienteer.compare.structure_density import density_of
from orienteer.compute.arrays import Array, to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import identity
from orienteer.particle.base import Particle
from orienteer.volume.unit_mistakes import unit_mistake
from orienteer.volume.volume import Volume

# Radii that differ by more than this factor cannot belong to one particle, whatever the noise in the box.
_NOT_THE_SAME = 5.0
_VOXELS, _FEW_VOXELS = 64, 32
# A size fits clearly better if it leaves at most this share of 1 - correlation, and differs by at least that
# share from the present size.  The radii of gyration start a second search if the correlation is below _GOOD
# and they differ by more than _OTHER_RADIUS.
_LESS_MISSING, _OTHER_SIZE = 0.6, 0.015
_GOOD, _OTHER_RADIUS = 0.97, 0.04


@dataclass(frozen=True)
class ScaleFit:
    """The size at which a density fits another better.

    scale : factor by which the moving density should be larger.
    correlation : with that size; before : with the present size.
    """

    scale: float
    correlation: float
    before: float


def refuse_other_size(first: Volume | Particle, second: Volume | Particle) -> None:
    """Refuse a pair if one is many times as large as the other: no rotation could align them."""
    one_A, other_A = (_radius_A(given) for given in (first, second))
    if min(one_A, other_A) <= 0 or max(one_A, other_A) < _NOT_THE_SAME * min(one_A, other_A):
        return
    raise OrienteerError(
        f"the first is about {2 * one_A:.3g} A across and the second {2 * other_A:.3g} A: "
        "they do not show the same thing, or a voxel size is wrong.",
        unit_mistake(one_A, other_A) or "Compare their voxel sizes with: orienteer inspect",
    )


def _radius_A(given: Volume | Particle) -> float:
    """Approximate radius of the particle; 0 if it cannot be determined."""
    if not isinstance(given, Volume):
        given = density_of(given, _FEW_VOXELS, 2.2 * given.radius_A / _FEW_VOXELS)
    steps = max(1, max(given.shape) // _VOXELS)
    values = to_numpy(given.values)[::steps, ::steps, ::steps]
    # The radius of a ball with the same radius of gyration.
    return float((5 / 3) ** 0.5 * _radius(np.nan_to_num(values)) * steps * max(given.voxel_size))


def better_scale(found: DensityAlignment, moving: Volume) -> ScaleFit | None:
    """The size of the moving density that fits clearly better than its own; None if there is none.

    found : the alignment of the moving density; moving : the density as given.
    """
    before, near = _refined_size(found)
    tries = [near]
    radius, own_radius = (_radius(volume.values) for volume in (found.reference, found.turned))
    ratio = radius / own_radius if own_radius > 0 else 1.0
    if before < _GOOD and abs(ratio - 1) > _OTHER_RADIUS and 0.2 < ratio < 5:
        step = tuple(ratio * size for size in moving.voxel_size)
        again = align_densities(found.reference, replace(moving, voxel_size=step, origin=None))
        _, fit = _refined_size(again)
        tries.append(replace(fit, scale=ratio * fit.scale))
    best = max(tries, key=lambda fit: fit.correlation)
    if 1 - best.correlation > _LESS_MISSING * (1 - before) or abs(best.scale - 1) < _OTHER_SIZE:
        return None
    return ScaleFit(best.scale, best.correlation, before)


def _refined_size(found: DensityAlignment) -> tuple[float, Placement]:
    """The correlation as aligned, and the placement with the best size nearby."""
    reference, turned = (in_fewer_voxels(v.values, _VOXELS) for v in (found.reference, found.turned))
    refinement, movable = Refinement(reference), MovableDensity(turned)
    start = Placement(identity(), np.zeros(3), 1)
    as_it_is = refinement.refine(movable, start)
    return as_it_is.correlation, refinement.refine(movable, start, scale_too=True)


def _radius(values: Array) -> float:
    """Radius of gyration of the density inside a mask, in voxels; 0 if it cannot be determined."""
    try:
        mask = soft_mask(values, 1.0, dilate_A=0, edge_A=0)
    except OrienteerError:
        return 0.0
    inside = to_numpy(mask) > 0
    own = to_numpy(values).astype(np.float64)
    weights = np.where(inside, own - own[~inside].mean(), 0.0) if not inside.all() else np.ones(own.shape)
    weights = np.maximum(weights, 0)
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    places = np.indices(weights.shape).reshape(3, -1)
    centre = places @ weights.ravel() / total
    square = ((places - centre[:, None]) ** 2).sum(axis=0)
    return float(np.sqrt(square @ weights.ravel() / total))
