"""A flat background of the intensity: stray light and noise that are the same at all voxels.

Left in, it becomes a bright spot in the middle of the density.  Speckles are dark somewhere, so what the
darkest voxels of the outer shells have is background; how much exactly, a density that explains the others
tells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.phase.data import PhasingData
from orienteer.phase.half_grid import frequencies, transform_of, voxel_counts

# Share of the voxels of a shell that count as dark.
_DARK_SHARE = 0.05
# Outer shells, by their share of all, whose dark voxels are looked at, and the fewest voxels of a shell.
_OUTER_SHARE = 0.5
_LEAST_VOXELS = 50
# How far a fit may go above what the darkest shell has.
_FIT_ABOVE = 1.3


@dataclass(frozen=True)
class DarkLevel:
    """What dark voxels tell of the background, in units of the intensity.

    estimate : the likeliest; most : more would make voxels negative, but for noise.
    """

    estimate: float
    most: float


def dark_level(data: PhasingData) -> DarkLevel:
    """The background by the darkest voxels of the outer shells.

    Of fully developed speckles of mean m, a share s is darker than -m ln(1 - s); what is more is background.
    """
    values, shell = to_numpy(data.amplitudes) ** 2, _shells(data.n)
    measured = to_numpy(data.measured)
    last = int(shell[measured].max())
    dark_of_speckles = -np.log(1 - _DARK_SHARE)
    darks, estimates = [], []
    for s in range(int((1 - _OUTER_SHARE) * last), last + 1):
        own = values[measured & (shell == s)].astype(np.float64)
        if own.size >= _LEAST_VOXELS:
            dark = float(np.quantile(own, _DARK_SHARE))
            darks.append(dark)
            estimates.append((dark - dark_of_speckles * float(own.mean())) / (1 - dark_of_speckles))
    if not darks:
        return DarkLevel(0.0, 0.0)
    estimate = max(float(np.median(estimates)), 0.0)
    return DarkLevel(estimate, max(_FIT_ABOVE * min(darks), estimate))


def fit_background(density: Array, data: PhasingData, level: DarkLevel) -> Array:
    """The background (B,) float32 that densities leave to explain, within the range of the dark level.

    Every shell counts by its mean, so that the many faint voxels decide and not the few bright ones.

    density : (B, n, n, n) that obeys all constraints.
    """
    xp = array_namespace(density)
    used = data.measured & ~data.held_out
    weight = _weights(data)[to_numpy(used)]
    weight = xp.asarray((weight / weight.sum()).astype(np.float32))
    values = data.amplitudes[used] ** 2
    result = np.empty(len(density))
    for start in range(len(density)):
        found = transform_of(density[start])[used]
        left = float(to_numpy((weight * (values - found.real**2 - found.imag**2)).sum()))
        result[start] = min(max(left, 0.0), level.most)
    return xp.asarray(result.astype(np.float32))


def _weights(data: PhasingData) -> NDArray[np.float64]:
    """One over the square of the mean of each shell, times the voxels that a place stands for."""
    shell, measured = _shells(data.n), to_numpy(data.measured)
    values = (to_numpy(data.amplitudes) ** 2).astype(np.float64)
    number = np.maximum(np.bincount(shell[measured], minlength=shell.max() + 1), 1)
    means = np.bincount(shell[measured], weights=values[measured], minlength=len(number)) / number
    means = np.maximum(means, 1e-6 * means.max())
    return np.asarray(voxel_counts(data.n) / means[shell] ** 2)


def _shells(n: int) -> NDArray[np.int64]:
    whole, half = frequencies(n)
    return np.rint(np.sqrt(whole[:, None, None] ** 2 + whole[:, None] ** 2 + half**2)).astype(np.int64)
