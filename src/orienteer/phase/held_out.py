"""Voxels that phasing does not see, and how well a density foretells them.

Neighbours within a speckle say the same, so voxels are left out a speckle at a time: those that are bright
in the speckle pattern of some random body of the particle's size.  A pattern has the mate of every voxel too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.phase.half_grid import frequencies, transform_of, voxel_counts

# The first speckles hold the shape of the whole particle, and none of them can be spared.
_SPARED_SPECKLES = 4.0
# At most this share of the measured voxels is spared.
_MOST_SPARED = 0.3


def choose_held_out(
    measured: NDArray[np.bool_], speckle: float, share: float, seed: int
) -> NDArray[np.bool_]:
    """Measured voxels that are left out, (n, n, n // 2 + 1) bool in the order of the FFT.

    measured : (n, n, n // 2 + 1) bool.
    speckle : width of a speckle in voxels, box over diameter.
    share : how many of the measured voxels to leave out, about.
    """
    n = len(measured)
    whole, half = frequencies(n)
    square = whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2
    inner = min(_SPARED_SPECKLES * speckle, float(np.quantile(np.sqrt(square[measured]), _MOST_SPARED)))
    candidates = measured & (square > inner**2)
    inside = whole[:, None, None] ** 2 + whole[:, None] ** 2 + whole**2 <= (n / speckle / 2) ** 2
    body = np.random.default_rng([seed, 1]).normal(size=(n, n, n)) * inside
    pattern = np.abs(transform_of(body))
    n_out = min(int(round(share * measured.sum())), int(candidates.sum()) // 2)
    if n_out == 0:
        return np.zeros_like(measured)
    least = np.partition(pattern[candidates], -n_out)[-n_out]
    return np.asarray(candidates & (pattern >= least))


def free_log_likelihood(density: Array, background: Array, data: Any) -> NDArray[np.float64]:
    """Mean log-likelihood of the voxels held out, (B,), higher for a density that foretells them better.

    density : (B, n, n, n) that obeys all constraints; background : (B,) of the intensity.
    The amplitude of a voxel is taken as Gaussian around the density's own, its error the larger of the
    intensity's and a tenth of the mean amplitude of the speckles; constants are left out.
    """
    return log_likelihood(density, background, data, data.held_out)


def log_likelihood(density: Array, background: Array, data: Any, use: Array) -> NDArray[np.float64]:
    """Mean log-likelihood of the voxels ``use`` (n, n, n // 2 + 1), (B,); see :func:`free_log_likelihood`."""
    xp = array_namespace(density)
    counts = xp.broadcast_to(xp.asarray(voxel_counts(data.n), dtype=xp.float32), use.shape)[use]
    amplitude = data.amplitudes[use]
    # The error of an amplitude is that of the intensity over twice the amplitude, where that is not zero.
    error = data.sigma[use] / (2 * xp.sqrt(amplitude**2 + data.sigma[use] / 2))
    weight = counts / xp.maximum(error, 1e-12 * float(amplitude.max()) + 1e-30) ** 2
    total = float(counts.sum())
    result = np.empty(len(density))
    for start in range(len(density)):
        found = transform_of(density[start])[use]
        modulus = xp.sqrt(found.real**2 + found.imag**2 + xp.maximum(background[start], 0))
        result[start] = -float(to_numpy((weight * (modulus - amplitude) ** 2).sum())) / (2 * total)
    return result
