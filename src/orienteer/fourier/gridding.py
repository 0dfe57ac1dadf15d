"""The corrected grid from which a transform is interpolated: from a particle, or from a density on voxels.

A particle is known by its exact transform F.  Its density cannot be had without cutting F off somewhere,
and a sharp cut would ring far beyond the particle.  So:

1. F is taken on a coarse grid of spacing 1/L, to Q = q_max + margin, and multiplied along each axis by a
   taper that is 1 to q_max and falls smoothly to 0 at Q.  Below q_max nothing changes.
2. An FFT gives the density in a box of side L = 2 R + 2 padding.  Outside the particle it is the response to
   what the taper removed, so it holds frequencies above q_max only, and it falls like
   exp(-pi margin padding).  What is left of it at the box's edge folds back: that product is chosen from the
   error asked for, and its factors so that the coarse grid is smallest.
3. The density is divided by the kernel's transform, extended with zeros to the oversampled box, and
   transformed back: axis by axis, keeping after each only the frequencies that will be read, so that the
   whole oversampled cube never exists.
"""

from dataclasses import dataclass
from math import ceil, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.fourier.interpolation_kernel import InterpolationKernel
from orienteer.particle.base import Particle

_SLAB_BYTES = 64 * 2**20


@dataclass(frozen=True)
class FineGrid:
    """Values G on a cubic grid, for interpolation anywhere within ``q_max``.

    values : (m, m, m or m + 1) complex64; the last axis is padded to even length so that rows stay aligned.
    spacing_inv_A : distance between grid points.
    centre : index of q = 0 along every axis.
    """

    values: NDArray[np.complex64]
    spacing_inv_A: float
    centre: int


def coarse_density(
    particle: Particle, photon_energy_eV: float | None, q_max_inv_A: float, error: float
) -> tuple[NDArray[np.complex128], float]:
    """The particle's tapered density in electrons per voxel, centre at n // 2, and the voxel in A."""
    from scipy.fft import fftn, fftshift, ifftshift, next_fast_len

    radius = max(particle.radius_A, 0.5 / q_max_inv_A)
    decay = (log(1 / error) + 3) / pi
    padding = sqrt(decay * radius / q_max_inv_A)
    box = 2 * (radius + padding)
    q_cut = q_max_inv_A + decay / padding
    n = 2 * next_fast_len(ceil(q_cut * box))
    axis = (np.arange(n) - n // 2) / box
    taper = _taper(np.abs(axis), q_max_inv_A, q_cut, decay * pi)
    values = np.array(particle.amplitude_on_grid(axis, photon_energy_eV), dtype=np.complex128)
    values *= taper[:, None, None]
    values *= taper[:, None]
    values *= taper
    density = fftn(ifftshift(values), norm="forward", workers=-1, overwrite_x=True)
    return fftshift(density), box / n


def fine_grid(
    density: NDArray[Any], voxel_A: float, diameter_A: float, kernel: InterpolationKernel, q_max_inv_A: float,
    dtype: Any = np.complex64,
) -> FineGrid:  # fmt: skip
    """The corrected, oversampled transform of a density (n, n, n) in electrons per voxel, centre at n // 2.

    ``dtype`` is the precision of the transforms; the result is complex64.
    """
    from scipy.fft import next_fast_len

    n = len(density)
    # Never smaller than the density's own box, whose rim may hold the taper's tail.
    n_fine = next_fast_len(max(n, ceil(kernel.oversampling * diameter_A / voxel_A)))
    spacing = 1 / (n_fine * voxel_A)
    centre = ceil(q_max_inv_A / spacing + kernel.width / 2) + 1

    voxel = np.arange(n) - n // 2
    correction = 1 / kernel.transform(voxel / n_fine)
    values = np.array(density, dtype=dtype)
    kept = np.arange(-centre, centre + 1) % n_fine
    for axis in (2, 1, 0):
        values = _transform_axis(values, axis, correction, voxel % n_fine, n_fine, kept)
    m = 2 * centre + 1
    padded = np.zeros((m, m, m + 1), np.complex64)
    padded[:, :, :m] = values
    return FineGrid(padded, spacing, centre)


def _transform_axis(
    values: NDArray[Any], axis: int, correction: NDArray[np.float64], voxel: NDArray[np.int64], n_fine: int,
    kept: NDArray[np.int64],
) -> NDArray[Any]:  # fmt: skip
    """sum_v values_v correction_v exp(+2 pi i l v / n_fine) along one axis, for l in ``kept``."""
    from scipy.fft import ifft

    lines = np.moveaxis(values, axis, -1)
    result = np.empty((*lines.shape[:-1], len(kept)), values.dtype)
    slab = max(1, _SLAB_BYTES // (lines.shape[1] * n_fine * values.itemsize))
    for first in range(0, len(lines), slab):
        some = lines[first : first + slab]
        extended = np.zeros((*some.shape[:-1], n_fine), values.dtype)
        extended[..., voxel] = some * correction.astype(values.real.dtype)
        # norm="forward" leaves the sign +2 pi i transform unscaled, as the conventions want it.
        result[first : first + slab] = ifft(extended, norm="forward", workers=-1, overwrite_x=True)[..., kept]
    return np.moveaxis(result, -1, axis)


def _taper(q: NDArray[np.float64], q_max: float, q_cut: float, beta: float) -> NDArray[np.float64]:
    """1 up to q_max, 0 from q_cut on; between them the integral of a Kaiser-Bessel window."""
    u = np.linspace(-1, 1, 2**15 + 1)
    window = np.i0(beta * np.sqrt(1 - u * u))
    rising = np.concatenate([[0.0], np.cumsum((window[1:] + window[:-1]) / 2)])
    where = (q - (q_max + q_cut) / 2) / ((q_cut - q_max) / 2)
    return np.asarray(1 - np.interp(where, u, rising / rising[-1]))
