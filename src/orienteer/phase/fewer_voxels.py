"""An intensity on as few voxels as its speckles need: phasing is cheaper, and each voxel has less noise.

Reconstructions have four or more voxels across a speckle, because interpolation needs them.  Two are enough
for amplitudes to determine a density.  The transform of the intensity is the autocorrelation of the particle,
which ends at its diameter; a smaller box of the autocorrelation loses nothing but noise from beyond.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import centred_axis, distances
from orienteer.compare.shells import radial_mean
from orienteer.compute.machine import usable_cores

# Edge of the box over the diameter; 2 would be enough if the diameter were known exactly.
BOX = 2.6
# A new box must be smaller than this share of the old one to be worthwhile.
_WORTHWHILE = 0.9
# The autocorrelation is kept up to _KEPT diameters, and falls to 0 over another _FALL diameters.
_KEPT, _FALL = 1.1, 0.4
# Standard deviation, in speckles, of the smoothing of the profile.
_ENVELOPE = 0.7
# Share of the voxels around a voxel that must be measured.
_MEASURED = 0.5


@dataclass(frozen=True, eq=False)
class Fewer:
    """An intensity on fewer voxels.

    cube : (m, m, m) float64, m odd; NaN where it was not measured.
    noise : noise of its voxels over that of the original voxels, if theirs was independent.
    """

    cube: NDArray[np.float64]
    voxel_inv_A: float
    noise: float


def with_fewer_voxels(cube: NDArray[np.float64], voxel_inv_A: float, diameter_A: float) -> Fewer | None:
    """The intensity in a box of BOX diameters; None if that is hardly smaller than the present one.

    cube : (n, n, n), n odd, Friedel-symmetric, NaN where it was not measured.

    Relative deviations from the radial mean are averaged over the measured voxels, so that neither the steep
    profile nor the edges of the data cause ringing.
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
    """The smallest odd number of voxels that is not below a length."""
    return 2 * int(np.ceil((length - 1) / 2)) + 1


class _Envelope:
    """Radial mean of a cube at any radius, smoothed over ``smoothing`` voxels; constant beyond its end.

    A round particle has rings that are as narrow as speckles.  The envelope must change more slowly than the
    intensity that is divided by it, or the quotient needs finer voxels.
    """

    def __init__(self, cube: NDArray[np.float64], smoothing: float) -> None:
        from scipy.ndimage import gaussian_filter1d

        mean = radial_mean(cube)
        self._shells = np.flatnonzero(np.isfinite(mean) & (mean > 0))
        self._log = gaussian_filter1d(np.log(mean[self._shells]), smoothing, mode="nearest")

    def __call__(self, radius: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(np.interp(radius, self._shells, self._log)))


def _window(m: int, diameter: float) -> NDArray[np.float64]:
    """(m, m, m) weight of each voxel of the autocorrelation, its origin in the middle; diameter in voxels."""
    distance = distances(centred_axis(m)) / diameter
    return np.asarray(0.5 + 0.5 * np.cos(np.pi * np.clip((distance - _KEPT) / _FALL, 0, 1)))


def _in_smaller_box(cube: NDArray[np.float64], window: NDArray[np.float64]) -> NDArray[np.float64]:
    """Transform back from the windowed middle of the transform: the cube smoothed, on coarser voxels."""
    from scipy.fft import fftn, fftshift, ifftn, ifftshift

    n, m, cores = len(cube), len(window), usable_cores()
    # The kept voxels lie around the origin, the first voxel; only these are reordered.
    kept = (np.arange(m) - m // 2) % n
    autocorrelation = ifftn(ifftshift(cube), workers=cores)[np.ix_(kept, kept, kept)]
    return np.asarray(fftshift(fftn(ifftshift(autocorrelation * window), workers=cores)).real)
