"""From the position of a pixel to its scattering vector, its solid angle and its polarisation factor.

Pure functions of positions in metres from the sample, with the beam along +z; NumPy in, NumPy out, CuPy in,
CuPy out, and any leading axes.
"""

from typing import Literal, TypeAlias

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError

Polarisation: TypeAlias = Literal["x", "y", "none"]
POLARISATIONS: tuple[Polarisation, ...] = ("x", "y", "none")


def ewald_vectors(positions_m: Array) -> Array:
    """k_out − k_in as unit vectors, (..., 3), so that q = ewald_vectors / λ; z is never positive."""
    xp = array_namespace(positions_m)
    x, y, z = positions_m[..., 0], positions_m[..., 1], positions_m[..., 2]
    sideways = x * x + y * y
    distance = xp.sqrt(sideways + z * z)
    # cos(2θ) − 1 without the cancellation at small angles: −(x² + y²) / (r (r + z)) on the forward side.
    forward = z > 0
    bend = xp.where(forward, -sideways / (distance * xp.where(forward, distance + z, 1.0)), z / distance - 1)
    return xp.stack([x / distance, y / distance, bend], axis=-1)


def solid_angle_sr(positions_m: Array, area_vectors_m2: Array) -> Array:
    """Solid angle (...,) of pixels: area vector (..., 3) along the line of sight over distance squared."""
    xp = array_namespace(positions_m)
    square = xp.sum(positions_m * positions_m, axis=-1)
    return xp.abs(xp.sum(positions_m * area_vectors_m2, axis=-1)) / (square * xp.sqrt(square))


def polarisation_factor(vectors: Array, kind: Polarisation) -> Array:
    """Factor (...,) of the intensity due to polarisation: 1 − k_x² for "x", 1 − k_y² for "y", or their mean.

    vectors : (..., 3) unit vectors k_out, or Ewald vectors, which have the same x and y.
    """
    x_squared, y_squared = vectors[..., 0] ** 2, vectors[..., 1] ** 2
    if kind == "x":
        return 1 - x_squared
    if kind == "y":
        return 1 - y_squared
    if kind == "none":
        return 1 - (x_squared + y_squared) / 2
    raise OrienteerError(f"polarisation '{kind}' is not one of {', '.join(POLARISATIONS)}.")
