"""The densities of two halves, one brought onto the other, and the resolution to which they agree."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.criteria import Resolution, half_bit_curve, resolution_at
from orienteer.compare.densities import DensityAlignment, align_densities
from orienteer.compare.fsc import Fsc
from orienteer.compare.mask import filled_share, soft_mask
from orienteer.compare.phase_randomisation import MaskedFsc, masked_fsc
from orienteer.volume.volume import Volume

CRITERIA = ("0.143", "0.5", "half-bit")


@dataclass(frozen=True, eq=False)
class HalfMaps:
    """Two densities on one grid, and how far they agree.

    first, second : the second is turned, shifted and, where needed, mirrored onto the first.
    mask : soft, around the mean of the two.
    curves : Fourier shell correlations up to the edge of the data; ``corrected`` is the one to quote.
    half_bit : (S,) the half-bit threshold at each shell.
    resolutions : of the corrected curve, by criterion.
    alignment : how the second was brought onto the first.
    """

    first: Volume
    second: Volume
    mask: Volume
    curves: MaskedFsc
    half_bit: NDArray[np.float64]
    resolutions: dict[str, Resolution]
    alignment: DensityAlignment


def compare_half_maps(
    first: Volume, second: Volume, *, edge_A: float = 0.0, order: int = 1, seed: int = 0, n_draws: int = 3
) -> HalfMaps:
    """Bring two densities onto each other and compare them shell by shell.

    edge_A : full period of the edge of the data; beyond, densities hold what no frame has shown.
    order : of the symmetry that both were given.
    seed, n_draws : of the random phases that show what the mask adds.
    """
    alignment = align_densities(first, second)
    one, other = alignment.reference, alignment.turned
    voxel_A = float(one.voxel_size[0])
    mask = soft_mask((one.values + other.values) / 2, voxel_A)
    curves = masked_fsc(one.values, other.values, mask, voxel_A, seed=seed, n_draws=n_draws)
    if edge_A:
        curves = up_to(curves, 1 / edge_A)
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


def up_to(curves: MaskedFsc, edge_inv_A: float) -> MaskedFsc:
    """The curves without the shells that reach beyond a radius."""
    step = float(curves.corrected.q_inv_A[1]) if len(curves.corrected.q_inv_A) > 1 else 0.0
    n = max(2, int(np.sum(curves.corrected.q_inv_A + step / 2 <= edge_inv_A * (1 + 1e-6))))

    def cut(curve: Fsc) -> Fsc:
        return Fsc(curve.q_inv_A[:n], curve.correlation[:n], curve.n_voxels[:n], curve.voxel_size_A)

    return MaskedFsc(
        cut(curves.corrected), cut(curves.masked), cut(curves.unmasked), cut(curves.random),
        curves.random_from_inv_A,
    )  # fmt: skip
