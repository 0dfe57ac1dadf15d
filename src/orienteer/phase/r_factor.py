"""The R-factor: how far the amplitudes of a density are from the measured ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.errors import OrienteerError
from orienteer.phase.half_grid import shell_sums


@dataclass(frozen=True, eq=False)
class RFactor:
    """Sum of ||F| - A| over the sum of A, after F was scaled to fit A best.

    overall : over all shells.
    q_inv_A, by_shell : (S,) float64, of the shells in which something was measured.
    """

    overall: float
    q_inv_A: NDArray[np.float64]
    by_shell: NDArray[np.float64]


def r_factor(
    transform: Array, amplitudes: Array, measured: Array, voxel_inv_A: float, background: float = 0.0
) -> RFactor:
    """Compare the transform of a density with measured amplitudes, inside the last whole shell.

    transform : (n, n, n // 2 + 1) complex.
    amplitudes : (n, n, n // 2 + 1) real, square roots of the intensity, background included.
    measured : (n, n, n // 2 + 1) bool.
    voxel_inv_A : edge of a voxel of Fourier space.
    background : flat intensity that does not come from the particle; it is added to that of the density.
    """
    xp: Any = array_namespace(transform)
    found = xp.sqrt(xp.abs(transform) ** 2 + background)
    given = xp.where(measured, amplitudes, 0)
    products, squares = (float(shell_sums(part, measured).sum()) for part in (found * given, found * found))
    if not squares > 0:
        raise OrienteerError(
            "the transform of the density is zero wherever something was measured, so it explains nothing.",
            "Phase again with another seed, or to a coarser resolution.",
        )
    difference = xp.abs(found * (products / squares) - given)
    wrong, whole = (to_numpy(shell_sums(part, measured)) for part in (difference, given))
    seen = whole > 0
    q_inv_A = np.arange(len(whole), dtype=np.float64) * voxel_inv_A
    return RFactor(float(wrong[seen].sum() / whole[seen].sum()), q_inv_A[seen], wrong[seen] / whole[seen])
