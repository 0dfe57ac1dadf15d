"""A flat background of the intensity: stray light and noise that are the same at all voxels.

Left in, it becomes a bright spot in the middle of the density.  Speckles have dark places, so the darkest
voxels of the outer shells limit the background from above.  Its exact value is what a density leaves
unexplained.
"""

from dataclasses import dataclass

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, to_device, to_numpy
from orienteer.phase.data import PhasingData
from orienteer.phase.half_grid import rounded_radii, transform_of, voxel_counts

# Share of the voxels of a shell that count as dark.
_DARK_SHARE = 0.05
# Share of the shells, from the edge inwards, whose dark voxels are used, and the fewest voxels of a shell.
_OUTER_SHARE = 0.5
_LEAST_VOXELS = 50
# Factor by which a fit may exceed the level of the darkest shell.
_FIT_ABOVE = 1.3


@dataclass(frozen=True)
class DarkLevel:
    """The background from dark voxels, in units of the intensity.

    estimate : the likeliest value; most : a larger one would make voxels negative, beyond their noise.
    """

    estimate: float
    most: float


def dark_level(data: PhasingData) -> DarkLevel:
    """The background from the darkest voxels of the outer shells.

    A share s of fully developed speckles of mean m is darker than -m ln(1 - s); if that quantile of a shell
    is higher, the excess is background.  Its error grows with m, so faint shells weigh most.  If only few
    parts of the particle scatter far out, speckles have no dark places there, and bright shells would count
    the particle as background.
    """
    values, shell = to_numpy(data.amplitudes).astype(np.float64) ** 2, rounded_radii(data.n)
    measured = to_numpy(data.measured & ~data.held_out)
    last = int(shell[measured].max())
    dark_of_speckles = -np.log(1 - _DARK_SHARE)
    darks, means = [], []
    for s in range(int((1 - _OUTER_SHARE) * last), last + 1):
        own = values[measured & (shell == s)]
        if own.size >= _LEAST_VOXELS:
            darks.append(float(np.quantile(own, _DARK_SHARE)))
            means.append(float(own.mean()))
    if not darks or not min(means) > 0:
        return DarkLevel(0.0, 0.0)
    dark, mean = np.array(darks), np.array(means)
    flat = (dark - dark_of_speckles * mean) / (1 - dark_of_speckles)
    estimate = float(np.average(flat, weights=(mean.min() / mean) ** 2))
    return DarkLevel(float(np.clip(estimate, 0, dark.min())), _FIT_ABOVE * float(dark.min()))


@dataclass(frozen=True, eq=False)
class BackgroundFit:
    """Finds the background that a density leaves unexplained.

    Voxels are weighted by one over the squared mean of their shell, so that the many faint voxels decide and
    not the few bright ones.

    level : the background from dark voxels.
    weight : (n, n, n // 2 + 1) float32 that add up to 1; 0 in voxels that the iterations do not use.
    mean : weighted mean of the intensity.
    """

    level: DarkLevel
    weight: Array
    mean: float

    @classmethod
    def of(cls, data: PhasingData) -> "BackgroundFit":
        """The fit to the voxels that the iterations use."""
        shell, measured = rounded_radii(data.n), to_numpy(data.measured & ~data.held_out)
        values = to_numpy(data.amplitudes).astype(np.float64) ** 2
        number = np.maximum(np.bincount(shell[measured], minlength=shell.max() + 1), 1)
        means = np.bincount(shell[measured], weights=values[measured], minlength=len(number)) / number
        means = np.maximum(means, 1e-6 * means.max())
        weight = np.where(measured, voxel_counts(data.n) / means[shell] ** 2, 0)
        weight /= weight.sum()
        on_device = to_device(weight.astype(np.float32), data.device)
        return cls(dark_level(data), on_device, float((weight * values).sum()))

    def __call__(self, density: Array) -> Array:
        """The background (B,) float32 of densities (B, n, n, n) that obey all constraints.

        It stays between 0 and ``level.most``.  No data leave the device.
        """
        xp = array_namespace(density)
        explained = []
        for one in density:
            found = transform_of(one)
            explained.append((self.weight * (found.real**2 + found.imag**2)).sum(dtype=xp.float64))
        return xp.clip(self.mean - xp.stack(explained), 0.0, self.level.most).astype(xp.float32)
