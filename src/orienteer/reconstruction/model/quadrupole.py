"""The share of the quadrupole in an intensity: zero for symmetries of polyhedra, large for most other bodies.

On a shell, an intensity is a sum of spherical harmonics of even degree.  Near the centre degree 2 dominates
for most bodies, because higher degrees rise with a higher power of q.  The groups T, O and I allow no degree
2, whatever the particle looks like otherwise.  A particle without a quadrupole counts as nearly round.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy

# The shells that are used, in speckles; and the share of the quadrupole below which a particle is nearly
# round.  The share was 0.000 for viruses and ten cages of balls with the symmetries T, O and I; 0.43 or more
# for a virus with one corner unlike the others, a spheroid of 1.1 to 1, chaperonins and nine bodies without
# symmetry; and up to 0.28 for models of viruses spoilt by noise or by a wrong solution.  A double ring of
# seven balls, as high as wide, has 0.11 and also counts as nearly round.
_SPECKLES, _ROUND = (1.0, 2.0), 0.35


def is_nearly_round(models: Array, speckle: float) -> bool:
    """Whether the first models of both halves (H, M, n, n, n) have hardly any quadrupole.

    speckle : width of a speckle in voxels.
    """
    first, last = (max(2, round(speckle * each)) for each in _SPECKLES)
    share = quadrupole_share(models[0, 0], models[-1, 0], range(first, max(last, first + 1)))
    return abs(share) < _ROUND


def quadrupole_share(first: Array, second: Array, shells: range) -> float:
    """The share of degree 2 in the covariance of two halves on some shells, each about its mean.

    first, second : (n, n, n) relative intensities, n odd; shells : in voxels, within the cube, from 2 on.
    About 0 for T, O and I, wherever their axes lie; 1 if there is nothing else.  Shells in which the halves
    have little in common count little.
    """
    reach, middle = shells[-1] + 1, len(first) // 2
    inside = slice(middle - reach, middle + reach + 1)
    values = [to_numpy(half[inside, inside, inside]).astype(np.float64).ravel() for half in (first, second)]
    axis = np.arange(-reach, reach + 1.0)
    x, y, z = (each.ravel() for each in np.meshgrid(axis, axis, axis, indexing="ij"))
    square = np.maximum(x * x + y * y + z * z, 1)
    shell = np.rint(np.sqrt(square)).astype(np.int64)
    number = np.maximum(np.bincount(shell), 1)
    # Normalised to a mean square of 1 over a shell.
    harmonics = (
        np.sqrt(15) * x * y, np.sqrt(15) * y * z, np.sqrt(15) * x * z,
        np.sqrt(15) / 2 * (x * x - y * y), np.sqrt(5) / 2 * (2 * z * z - x * x - y * y),
    )  # fmt: skip

    def mean(of: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(shell, of) / number)

    a, b = (half - mean(half)[shell] for half in values)
    quadrupole = sum(mean(a * each / square) * mean(b * each / square) for each in harmonics)
    chosen = np.asarray(shells)
    whole = float(mean(a * b)[chosen].sum())
    return float(np.asarray(quadrupole)[chosen].sum()) / whole if whole > 0 else 1.0
