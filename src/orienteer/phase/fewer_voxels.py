"""An intensity on as few voxels as its speckles need: phasing costs less, and each voxel is known better.

Reconstructions have four voxels and more across a speckle, because interpolation wants them fine.  Amplitudes
tell a density from two on.  The transform of the intensity is the autocorrelation of the particle, which ends
at its diameter; in a smaller box of the autocorrelation nothing is lost but noise from beyond.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compare.shells import radial_mean
from orienteer.compute.machine import usable_cores

# Edge of the box over the diameter: twice would do if the diameter were known well.
BOX = 2.6
# A box that is not smaller than this share of the old one is not worth the trouble.
_WORTHWHILE = 0.9
# The autocorrelation is kept up to so many diameters, and falls to nothing over as many more.
_KEPT, _FALL = 1.1, 0.4
# Speckles over which the profile is smoothed.
_ENVELOPE = 0.7
# Share of the voxels around one that must be measured.
_MEASURED = 0.5


@dataclass(frozen=True, eq=False)
class Fewer:
    """An intensity on fewer voxels.

    cube : (m, m, m) float64, m odd; NaN where it was not measured.
    noise : of its voxels over that of the voxels before, if theirs was independent.
    """

    cube: NDArray[np.float64]
    voxel_inv_A: float
    noise: float


def with_fewer_voxels(cube: NDArray[np.float64], voxel_inv_A: float, diameter_A: float) -> Fewer | None:
    """The intensity in a box of BOX diameters; None where that is hardly smaller.

    cube : (n, n, n), n odd, Friedel-symmetric, NaN where it was not measured.

    Deviations from the radial mean, relative to it, are averaged over what is measured: so neither the steep
    profile nor the rims of the data ring.
    """
    n = len(cube)
    m = _odd(BOX * diameter_A * n * voxel_inv_A)
    if m >= _WORTHWHILE * n:
        return None
    measured = np.isfinite(cube)
    radius = distances(centred_axis(n))
    profile = _Envelope(cube, _ENVELOPE / (diameter_A * voxel_inv_A))
    relative = np.where(measured, cube / profile(radius) - 1, 0.0)
    window = _window(m, diameter_A * n * voxel_inv_A)
    with ThreadPoolExecutor() as pool:
        smaller = pool.map(_in_smaller_box, (relative, measured.astype(np.float64)), (window, window))
        mean, known = smaller
    values = profile(distances(centred_axis(m, n / m))) * np.maximum(
        1 + mean / np.maximum(known, _MEASURED), 0.0
    )
    values[known <= _MEASURED] = np.nan
    return Fewer(values, voxel_inv_A * n / m, float(np.sqrt((window**2).sum() / n**3)))


def _odd(length: float) -> int:
    """The next odd whole number of voxels."""
    return 2 * int(np.ceil((length - 1) / 2)) + 1


class _Envelope:
    """Radial mean of a cube at any radius, smoothed over so many voxels; it goes on as it ends.

    A round particle has rings that are as narrow as speckles.  What intensities are divided by must change
    more slowly than they do, or the result needs finer voxels.
    """

    def __init__(self, cube: NDArray[np.float64], smoothing: float) -> None:
        from scipy.ndimage import gaussian_filter1d

        mean = radial_mean(cube)
        self._shells = np.flatnonzero(np.isfinite(mean) & (mean > 0))
        self._log = gaussian_filter1d(np.log(mean[self._shells]), smoothing, mode="nearest")

    def __call__(self, radius: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(np.interp(radius, self._shells, self._log)))


def _window(m: int, diameter: float) -> NDArray[np.float64]:
    """(m, m, m) what is kept of the autocorrelation, its origin in the middle; diameter in its voxels."""
    distance = distances(centred_axis(m)) / diameter
    return np.asarray(0.5 + 0.5 * np.cos(np.pi * np.clip((distance - _KEPT) / _FALL, 0, 1)))


def _in_smaller_box(cube: NDArray[np.float64], window: NDArray[np.float64]) -> NDArray[np.float64]:
    """The transform of the middle of the transform: the cube smoothed, on coarser voxels."""
    from scipy.fft import fftn, fftshift, ifftn, ifftshift

    n, m, cores = len(cube), len(window), usable_cores()
    # What is kept lies around the first voxel; nothing else is put into another order.
    kept = (np.arange(m) - m // 2) % n
    autocorrelation = ifftn(ifftshift(cube), workers=cores)[np.ix_(kept, kept, kept)]
    return np.asarray(fftshift(fftn(ifftshift(autocorrelation * window), workers=cores)).real)
