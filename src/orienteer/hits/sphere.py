"""The sphere: the expected hit if only the size of the particle is known."""

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.rings import Rings


def sphere_intensity(q_inv_A: NDArray[np.float64], diameter_A: float) -> NDArray[np.float64]:
    """|F(q)|² / |F(0)|² of a solid sphere: [3 (sin x - x cos x) / x³]² with x = π q D, q = 1/d.

    >>> float(sphere_intensity(np.array([0.0]), 300.0)[0])
    1.0
    """
    x = np.pi * np.asarray(q_inv_A, dtype=np.float64) * diameter_A
    small = x < 1e-2
    y = np.where(small, 1.0, x)
    amplitude = np.where(small, 1 - x**2 / 10, 3 * (np.sin(y) - y * np.cos(y)) / y**3)
    return np.asarray(amplitude**2)


def sphere_sizes(q_inv_A: NDArray[np.float64], spacing_inv_A: float, n: int) -> NDArray[np.float64]:
    """Diameters (n,) in A, in equal ratios, that a detector can distinguish.

    The smallest sphere has its first minimum at the edge of the detector; the largest has fringes 1.25 pixels
    wide.

    q_inv_A : lengths of the scattering vectors of the pixels; spacing_inv_A : between neighbouring pixels.
    """
    smallest = 1.43 / float(q_inv_A.max())
    return np.geomspace(smallest, max(1 / (1.25 * spacing_inv_A), 2 * smallest), n)


def sphere_profiles(rings: Rings, diameters_A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares (S, G) of the photons of a sphere in each ring; each row sums to 1."""
    profiles = np.stack(
        [rings.sums(rings.correction * sphere_intensity(rings.q_inv_A, d)) for d in diameters_A]
    )
    return np.asarray(profiles / profiles.sum(axis=1, keepdims=True))
