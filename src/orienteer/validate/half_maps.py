"""The densities of two halves, one aligned to the other, and the resolution to which they agree."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.common_grid import on_one_grid
from orienteer.compare.criteria import CRITERIA, Resolution, half_bit_curve, resolution_at
from orienteer.compare.densities import DensityAlignment, align_densities
from orienteer.compare.fsc import shells_within, within_shells
from orienteer.compare.mask import filled_share, soft_mask
from orienteer.compare.moving import move_density
from orienteer.compare.phase_randomisation import MaskedFsc, masked_fsc
from orienteer.compute.arrays import Array
from orienteer.volume.volume import Volume

# Names of the curves in the description of half maps.
CURVES = ("corrected", "masked", "unmasked", "randomised", "half_bit")
# Names of the files of the two densities and the mask.
MAP_FILES = ("density_half_1.mrc", "density_half_2.mrc", "mask.mrc")
# Description of half maps if there are none.
NO_MAPS: dict[str, Any] = {"resolutions_A": dict.fromkeys(CRITERIA), "fsc": None, "alignment": None}


@dataclass(frozen=True, eq=False)
class HalfMaps:
    """Two densities on one grid, and how far they agree.

    first, second : the second is turned, shifted and, if needed, mirrored onto the first.
    mask : soft, around the mean of the two.
    curves : Fourier shell correlations up to the edge of the data; ``corrected`` is the one to quote.
    half_bit : (S,) the half-bit threshold at each shell.
    resolutions : of the corrected curve, by criterion.
    alignment : how the second was aligned to the first.
    """

    first: Volume
    second: Volume
    mask: Volume
    curves: MaskedFsc
    half_bit: NDArray[np.float64]
    resolutions: dict[str, Resolution]
    alignment: DensityAlignment

    def agrees_to_A(self, level: float) -> float | None:
        """Resolution at which the corrected curve falls below a level; None: nowhere above."""
        return resolution_at(self.curves.corrected, level, filled_share(self.mask.values)).resolution_A

    def volumes(self) -> dict[str, Volume]:
        """The densities and the mask by the names of their files."""
        return dict(zip(MAP_FILES, (self.first, self.second, self.mask), strict=True))

    def describe(self) -> dict[str, Any]:
        """The entries of ``validation.json``: everything except the volumes."""
        curves, alignment = self.curves, self.alignment
        compared = (curves.corrected, curves.masked, curves.unmasked, curves.random)
        values = (*(curve.correlation for curve in compared), self.half_bit)
        return {
            "resolutions_A": {name: found.resolution_A for name, found in self.resolutions.items()},
            "fsc": {
                "q_inv_A": curves.corrected.q_inv_A,
                **dict(zip(CURVES, values, strict=True)),
                "n_voxels": curves.corrected.n_voxels,
                "random_from_inv_A": curves.random_from_inv_A,
            },
            "alignment": {
                "quaternion": alignment.quaternion,
                "shift_A": alignment.shift_A,
                "hand": alignment.hand,
                "correlation": alignment.correlation,
                "other_hand_correlation": alignment.other_hand_correlation,
            },
        }


def compare_half_maps(
    first: Volume, second: Volume, *, supports: tuple[Volume, Volume] | None = None, edge_A: float = 0.0,
    agrees_to_A: float = 0.0, order: int = 1, seed: int = 0, n_draws: int = 3,
    near: NDArray[np.float64] | None = None,
) -> HalfMaps:  # fmt: skip
    """Align two densities and compare them shell by shell.

    supports : phasing has set the densities to 0 outside of these, on their grids.
    edge_A : full period of the edge of the data; what densities hold beyond was not measured and is left out.
    agrees_to_A : full period to which the data of the halves agree before any phasing; 0: not known.
    order : of the symmetry that was given to both.
    seed, n_draws : of the random phases that show how much correlation supports and mask add.
    near : (4,), the rotation that turns the intensity of the second onto that of the first; None: unknown.
    """
    end_inv_A = 1 / edge_A if edge_A else np.inf
    alignment = align_densities(*(_within(volume, end_inv_A) for volume in (first, second)), near=near)
    one, other = (_within(volume, end_inv_A) for volume in (alignment.reference, alignment.turned))
    voxel_A = float(one.voxel_size[0])
    mask = soft_mask((one.values + other.values) / 2, voxel_A)
    walls = None if supports is None else _moved_supports(supports, alignment)
    curves = masked_fsc(
        one.values, other.values, mask, voxel_A, supports=walls, edge_inv_A=end_inv_A, seed=seed,
        n_draws=n_draws, random_from_inv_A=1 / agrees_to_A if agrees_to_A else np.inf,
    )  # fmt: skip
    filled = filled_share(mask)
    found = {name: resolution_at(curves.corrected, name, filled, order) for name in CRITERIA}
    return HalfMaps(
        replace(one, name="density of half 1"),
        replace(other, name="density of half 2"),
        replace(one, values=mask, name="mask", metadata={}),
        curves,
        half_bit_curve(curves.corrected.n_voxels, filled, order),
        found,
        alignment,
    )


def _within(density: Volume, end_inv_A: float) -> Volume:
    """A density without its Fourier components beyond an edge."""
    if np.isinf(end_inv_A):
        return density
    n, voxel_A = density.shape[0], float(density.voxel_size[0])
    return density.with_values(within_shells(density.values, shells_within(end_inv_A * n * voxel_A, n)))


def _moved_supports(supports: tuple[Volume, Volume], alignment: DensityAlignment) -> tuple[Array, Array]:
    """Supports on the grid of the comparison; the second is moved in the same way as its density."""
    first, second, voxel_A, _ = on_one_grid(*supports)
    moved = move_density(second.values, alignment.quaternion, alignment.shift_A / voxel_A, alignment.hand)
    return first.values > 0.5, moved > 0.5
