"""Voxels that phasing does not see, and how well a density foretells them.

Neighbours within a speckle say the same, so voxels are left out a speckle at a time: those that are bright
in the speckle pattern of some random body of the particle's size.  A pattern has the mate of every voxel too.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.symmetrising import symmetrised
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.orientation.point_group import PointGroup
from orienteer.phase.half_grid import frequencies, transform_of, voxel_counts

if TYPE_CHECKING:
    from orienteer.phase.data import PhasingData

NO_SYMMETRY = PointGroup("C1")
# The first speckles hold the shape of the whole particle, and none of them can be spared.
_SPARED_SPECKLES = 4.0
# At most this share of the measured voxels is spared.
_MOST_SPARED = 0.3
_SHELL_WIDTH = 3.0


def choose_held_out(
    measured: NDArray[np.bool_], speckle: float, share: float, seed: int, group: PointGroup = NO_SYMMETRY
) -> NDArray[np.bool_]:
    """Measured voxels that are left out, (n, n, n // 2 + 1) bool in the order of the FFT.

    measured : (n, n, n // 2 + 1) bool.
    speckle : width of a speckle in voxels, box over diameter.
    share : how many of the measured voxels to leave out, about.
    group : symmetry of the particle; equivalent voxels are left out together, as they say the same.
    """
    n = len(measured)
    whole, half = frequencies(n)
    square = whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2
    inner = min(_SPARED_SPECKLES * speckle, float(np.quantile(np.sqrt(square[measured]), _MOST_SPARED)))
    candidates = measured & (square > inner**2)
    axis = np.arange(n) - n // 2
    inside = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2 <= (n / speckle / 2) ** 2
    body = np.random.default_rng([seed, 1]).normal(size=(n, n, n)) * inside
    pattern = np.abs(transform_of(symmetrised(body, group)))
    n_out = min(round(share * measured.sum()), int(candidates.sum()) // 2)
    if n_out == 0:
        return np.zeros_like(measured)
    least = np.partition(pattern[candidates], -n_out)[-n_out]
    return np.asarray(candidates & (pattern >= least))


def free_log_likelihood(density: Array, background: Array, data: "PhasingData") -> NDArray[np.float64]:
    """Mean log-likelihood of the voxels held out, (B,), higher for a density that foretells them better.

    density : (B, n, n, n) that obeys all constraints; background : (B,) of the intensity.
    """
    return log_likelihood(density, background, data, data.held_out)


def log_likelihood(density: Array, background: Array, data: "PhasingData", use: Array) -> NDArray[np.float64]:
    """Mean log-likelihood of the voxels ``use`` (n, n, n // 2 + 1), (B,).

    The amplitude of a voxel is Gaussian around that of the density.  Its variance is the likeliest one in
    each shell, but not below the error of the data: so faint shells and bright ones have the same say, and
    none is fitted better than it is known.  Amplitudes are in units of their mean square in the shell.
    """
    xp: Any = array_namespace(density)
    counts = xp.broadcast_to(xp.asarray(voxel_counts(data.n)), use.shape)[use]
    shell = xp.asarray(_wide_shells(data.n))[use]
    n_shells = int(shell.max()) + 1 if shell.size else 0
    if not n_shells:
        return np.zeros(len(density))

    def means(values: Array) -> NDArray[np.float64]:
        sums = to_numpy(xp.bincount(shell, weights=values * counts, minlength=n_shells))
        return np.asarray(sums / np.maximum(number, 1e-300))

    number = to_numpy(xp.bincount(shell, weights=counts, minlength=n_shells))
    amplitude, sigma = data.amplitudes[use], data.sigma[use]
    power = np.maximum(means(amplitude**2), 1e-300)
    # The error of an amplitude is that of the intensity over twice the amplitude, where that is not small.
    known = means(sigma**2 / (4 * (amplitude**2 + sigma))) / power
    result = np.empty(len(density))
    for start in range(len(density)):
        found = transform_of(density[start])[use]
        modulus = xp.sqrt(found.real**2 + found.imag**2 + xp.maximum(background[start], 0))
        square = means((modulus - amplitude) ** 2) / power
        variance = np.maximum(np.maximum(square, known), 1e-12)
        result[start] = -(number * (np.log(variance) + square / variance)).sum() / (2 * number.sum())
    return result


def _wide_shells(n: int) -> NDArray[np.int64]:
    """Shells (n, n, n // 2 + 1) of some voxels' width, so that each holds enough voxels that are left out."""
    whole, half = frequencies(n)
    radius = np.sqrt(whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2)
    return np.asarray(np.floor(radius / _SHELL_WIDTH)).astype(np.int64)
