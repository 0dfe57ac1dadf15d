"""A hydration layer: water around the atoms, as Gaussian balls that turn with them."""

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.checked_numbers import as_numbers
from orienteer.particle.scatterers import gaussian_table
from orienteer.particle.solvent import WATER_DENSITY
from orienteer.particle.structure import Structure

_ATOM_RADIUS_A = 1.7  # used for every atom: the van der Waals radius of carbon
_WATER_RADIUS_A = 1.4
_MOST_VOXELS = 100_000_000


def hydration_layer(
    structure: Structure,
    thickness_A: float = 3.0,
    density: float = WATER_DENSITY,
    spacing_A: float = 2.0,
    outside_only: bool = False,
) -> Structure:
    """Water on the surface of a structure, as a structure of its own; add it: ``structure + layer``.

    thickness_A : how far the layer reaches beyond the surface of the atoms.
    density : electrons per Å³; for a particle in bulk solvent, give only the excess over it (about 0.03).
    spacing_A : edge of a voxel; each voxel becomes one Gaussian ball with σ of half the spacing.
    outside_only : leave out closed cavities, which water cannot reach from outside.

    Water fills the voxels that lie outside all atoms, within ``thickness_A`` of the surface of an atom, and
    where a water molecule has room.
    """
    for value, what in ((thickness_A, "thickness"), (spacing_A, "spacing")):
        if not (np.isfinite(value) and value > 0):
            raise OrienteerError(f"the {what} of a hydration layer must be positive, got {value} Å.")
    as_numbers(density, "the density of a hydration layer")
    axes = _voxel_axes(structure, thickness_A, spacing_A)
    distance = _distance_to_atoms(
        structure, axes, _ATOM_RADIUS_A + max(thickness_A, _WATER_RADIUS_A) + spacing_A
    )
    wet = _reached_by_water(distance, spacing_A, outside_only)
    layer = wet & (distance >= _ATOM_RADIUS_A) & (distance < _ATOM_RADIUS_A + thickness_A)
    if not layer.any():
        raise OrienteerError(
            f"a hydration layer of {thickness_A} Å contains no voxel of {spacing_A} Å.",
            "Make the spacing finer.",
        )
    x, y, z = (axis[index] for axis, index in zip(axes, np.nonzero(layer), strict=True))
    ball = gaussian_table([density * spacing_A**3], spacing_A / 2, name="water")
    positions = np.column_stack([x, y, z])
    return Structure(positions, np.zeros(len(positions), dtype=np.int64), ball)


def _voxel_axes(structure: Structure, thickness_A: float, spacing_A: float) -> list[NDArray[np.float64]]:
    """Voxel centres along x, y and z, with a margin so wide that water can pass around all atoms."""
    margin = _ATOM_RADIUS_A + max(thickness_A, 2 * _WATER_RADIUS_A) + 2 * spacing_A
    low, high = structure.positions_A.min(axis=0) - margin, structure.positions_A.max(axis=0) + margin
    counts = np.ceil((high - low) / spacing_A)
    if counts.prod() > _MOST_VOXELS:
        raise OrienteerError(
            f"a hydration layer at {spacing_A} Å would need {counts.prod():.1e} voxels.",
            "Make the spacing coarser.",
        )
    middle = (low + high) / 2
    return [
        m + (np.arange(int(n)) - (int(n) - 1) / 2) * spacing_A for m, n in zip(middle, counts, strict=True)
    ]


def _distance_to_atoms(
    structure: Structure, axes: list[NDArray[np.float64]], farthest_A: float
) -> NDArray[np.float64]:
    """Distance of each voxel centre from the nearest atom, infinite beyond ``farthest_A``."""
    from scipy.spatial import KDTree

    tree = KDTree(structure.positions_A)
    distance = np.empty([len(axis) for axis in axes])
    y, z = np.meshgrid(axes[1], axes[2], indexing="ij")
    for i, x in enumerate(axes[0]):
        points = np.column_stack([np.full(y.size, x), y.ravel(), z.ravel()])
        distance[i] = tree.query(points, distance_upper_bound=farthest_A)[0].reshape(y.shape)
    return distance


def _reached_by_water(
    distance: NDArray[np.float64], spacing_A: float, outside_only: bool
) -> NDArray[np.bool_]:
    """Voxels that a water molecule can cover without coming too close to an atom."""
    from scipy.ndimage import distance_transform_edt, label

    centres = distance >= _ATOM_RADIUS_A + _WATER_RADIUS_A
    if outside_only:
        regions, _ = label(centres)
        centres = regions == regions[0, 0, 0]
    # Half a voxel more, because the true surface can lie anywhere between two voxel centres.
    return np.asarray(distance_transform_edt(~centres) * spacing_A <= _WATER_RADIUS_A + spacing_A / 2)
