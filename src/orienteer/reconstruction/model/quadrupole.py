"""How much of an intensity is a quadrupole, which symmetries of polyhedra forbid and most bodies show first.

On a shell an intensity is a sum of spherical harmonics of even degree.  Near the centre those of degree 2 are
by far the strongest in most bodies, since the others rise with a higher power of q.  The groups T, O and I
leave none of degree 2, whatever the particle looks like otherwise: where there are none, it is nearly round.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy

# Shells that tell, in speckles, and share of the quadrupole below which a particle is nearly round.  Of
# viruses and ten cages of spheres with the symmetries T, O and I it was 0.000; of a virus with one corner
# unlike the others, of a spheroid of 1.1 to 1, of chaperonins and of nine bodies without symmetry 0.43 and
# more; of models of viruses that noise or a wrong basin had spoilt up to 0.28.  A double ring of seven balls,
# as high as wide, has 0.11 and counts as nearly round, too.
_SPECKLES, _ROUND = (1.0, 2.0), 0.35


def is_nearly_round(models: Array, speckle: float) -> bool:
    """Whether models of halves (H, M, n, n, n) have hardly a quadrupole; the first of each half tells.

    speckle : width of one in voxels.
    """
    first, last = (max(2, round(speckle * each)) for each in _SPECKLES)
    share = quadrupole_share(models[0, 0], models[-1, 0], range(first, max(last, first + 1)))
    return abs(share) < _ROUND


def quadrupole_share(first: Array, second: Array, shells: range) -> float:
    """The share of degree 2 in what two halves have in common on some shells, each about its mean.

    first, second : (n, n, n) relative intensities, n odd; shells : in voxels, within the cube, from 2 on.
    About 0 for T, O and I, wherever their axes lie; 1 where there is nothing else.  Shells that have little
    in common count little.
    """
    reach, middle = shells[-1] + 1, len(first) // 2
    inside = slice(middle - reach, middle + reach + 1)
    values = [to_numpy(half[inside, inside, inside]).astype(np.float64).ravel() for half in (first, second)]
    axis = np.arange(-reach, reach + 1.0)
    x, y, z = (each.ravel() for each in np.meshgrid(axis, axis, axis, indexing="ij"))
    square = np.maximum(x * x + y * y + z * z, 1)
    shell = np.rint(np.sqrt(square)).astype(np.int64)
    number = np.maximum(np.bincount(shell), 1)
    # Each of mean square 1 over a shell.
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
