"""Density and intensity of a known particle, on the grid of a volume that it is compared with."""

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import n_shells
from orienteer.errors import OrienteerError
from orienteer.particle.base import Particle
from orienteer.volume.volume import Volume

_MOST_VOXELS = 1024
_TAILS = 1.25


def density_of(particle: Particle, n: int, voxel_size_A: float, resolution_A: float | None = None) -> Volume:
    """The density of a particle in electrons per A³, up to a resolution.

    n : voxels along an edge; the box must contain the particle, whose origin is at the centre voxel.
    resolution_A : finest detail; by default that of the last whole shell of the transform.
    """
    if n < 1 or not 0 < voxel_size_A < np.inf:
        raise OrienteerError(f"there is no grid of {n} voxels of {voxel_size_A} A.")
    limit = n_shells(n) - 0.5
    if resolution_A is not None:
        if not resolution_A > 0:
            raise OrienteerError(f"a resolution of {resolution_A} A is impossible.")
        limit = min(limit, n * voxel_size_A / resolution_A)
    step = 1 / (n * voxel_size_A)
    k = np.arange(n) - n // 2
    amplitude = particle.amplitude_on_grid(k * step)
    square = k.astype(np.float64) ** 2
    amplitude[square[:, None, None] + square[:, None] + square > limit**2] = 0
    # F(q) = ∫ ρ exp(+2πi q·r) dr, so the inverse has the minus sign of NumPy's forward transform.
    density = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(amplitude))).real * step**3
    return Volume(density, voxel_size_A, metadata={"unit": "electrons per A^3"})


def density_like(particle: Particle, like: Volume) -> Volume:
    """The density of a particle on the voxels of another density, in its box or a larger one if needed."""
    voxel_A = max(like.voxel_size)
    box_A = max(np.multiply(like.shape, like.voxel_size))
    # The radius of a particle includes the faintest tails of its atoms, which may lie outside the box.
    box_A = max(box_A, 2 * particle.radius_A) if 2 * particle.radius_A > _TAILS * box_A else box_A
    n = int(np.ceil(box_A / voxel_A * (1 - 1e-6)))
    if n > _MOST_VOXELS:
        raise OrienteerError(
            f"the particle is {2 * particle.radius_A:.4g} A across, which is {n} voxels of {voxel_A:.4g} A.",
            "Check the voxel size of the density.",
        )
    return density_of(particle, n, voxel_A)


def intensity_of(particle: Particle, n: int, voxel_size_inv_A: float) -> Volume:
    """|F|² of a particle in electrons squared, on a reciprocal grid, centre voxel n // 2."""
    if n < 1 or not 0 < voxel_size_inv_A < np.inf:
        raise OrienteerError(f"there is no grid of {n} voxels of {voxel_size_inv_A} 1/A.")
    axis = (np.arange(n) - n // 2) * voxel_size_inv_A
    values: NDArray[np.float64] = np.abs(particle.amplitude_on_grid(axis)) ** 2
    return Volume(values, voxel_size_inv_A, "reciprocal", metadata={"unit": "electrons^2"})
