"""From scattering vectors back to directions: the vectors lie on the Ewald sphere, of radius 1/wavelength."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.errors import OrienteerError


def fit_ewald_radius(q: NDArray[Any]) -> float | None:
    """Radius 1/λ of the Ewald sphere, centred at (0, 0, −1/λ), through the scattering vectors q (P, 3).

    In the unit of q; a least-squares fit of |q|² + 2 q_z / λ = 0.  None if the vectors are flat (all q_z 0).

    >>> angle = np.radians([0.0, 5.0, 20.0])
    >>> q = 40 * np.stack([np.sin(angle), 0 * angle, np.cos(angle) - 1], axis=1)
    >>> round(fit_ewald_radius(q), 9)
    40.0
    """
    scale = float(np.abs(q).max(initial=0.0))
    if not scale > 0:
        return None
    unit = q / scale
    length_squared = np.einsum("pi,pi->p", unit, unit)
    bend = -2.0 * float(unit[:, 2] @ unit[:, 2])
    if bend == 0:
        return None
    radius = scale * float(unit[:, 2] @ length_squared) / bend
    return radius if 0 < radius < np.inf else None


def distance_from_sphere(q: NDArray[Any], radius: float) -> float:
    """Largest distance of the scattering vectors (P, 3) from the Ewald sphere, in units of its radius."""
    on_sphere = q / radius + np.array([0.0, 0.0, 1.0])
    return float(np.abs(np.linalg.norm(on_sphere, axis=1) - 1).max())


def positions_on_plane(q: NDArray[Any], radius: float, distance: float) -> NDArray[np.float64]:
    """(P, 3) points where the scattered rays of q (P, 3) meet the plane square to the beam at ``distance``.

    If all q_z are zero, q_x and q_y are taken as the components of the rays across the beam.
    """
    rays = np.asarray(q, dtype=np.float64) / radius
    if not rays[:, 2].any():
        sideways = np.einsum("pi,pi->p", rays[:, :2], rays[:, :2])
        forward = np.sqrt(np.clip(1 - sideways, 0, None))
    else:
        forward = 1 + rays[:, 2]
    if forward.min() < 1e-3:
        raise OrienteerError("some pixels scatter by 90 degrees or more, which a flat detector cannot see.")
    slopes = rays[:, :2] / forward[:, None]
    return np.concatenate([slopes * distance, np.full((len(q), 1), distance)], axis=1)
