"""How much of an intensity is a quadrupole, which symmetries of polyhedra forbid and most bodies show first.

On a shell an intensity is a sum of spherical harmonics of even degree.  Near the centre those of degree 2 are
by far the strongest in most bodies, since the others rise with a higher power of q.  The groups T, O and I
leave none of degree 2, whatever the particle looks like otherwise: where there are none, it is nearly round.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy


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
