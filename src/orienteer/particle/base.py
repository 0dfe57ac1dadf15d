"""Particle: anything that scatters, described by its exact transform."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.particle.checked_numbers import as_numbers


@runtime_checkable
class Particle(Protocol):
    """An object near the origin whose complex scattering amplitude F(q) is known exactly.

    F(q) = ∫ ρ(r) exp(+2πi q·r) dr in electrons, with q in 1/Å and no 2π in q.  ``photon_energy_eV`` only
    affects atoms: it adds their anomalous terms f' + i f''; None leaves them out.
    """

    @property
    def radius_A(self) -> float:
        """Everything that scatters lies within this distance of the origin."""
        ...

    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        """F at each scattering vector: (..., 3) in 1/Å to (...,) electrons, float64 throughout."""
        ...

    def amplitude_on_grid(
        self, axis_inv_A: ArrayLike, photon_energy_eV: float | None = None
    ) -> NDArray[np.complex128]:
        """F on the cubic grid axis × axis × axis: (n,) in 1/Å to (n, n, n) electrons, indexed [x, y, z]."""
        ...


def remarks_of(particle: Particle) -> tuple[str, ...]:
    """Sentences about what was left out or decided when the particle was made; empty for most particles."""
    return tuple(getattr(particle, "remarks", ()))


def scattering_vectors(q_inv_A: ArrayLike) -> NDArray[np.float64]:
    """The given vectors as float64, checked to be (..., 3)."""
    q = as_numbers(q_inv_A, "q_inv_A")
    if q.ndim == 0 or q.shape[-1] != 3:
        raise OrienteerError(
            f"q_inv_A must have shape (..., 3), got {q.shape}.", "Give x, y and z of each vector in 1/Å."
        )
    return q


def fill_grid(
    axis_inv_A: ArrayLike,
    amplitude: Callable[[NDArray[np.float64]], NDArray[np.complex128]],
    x_axis_inv_A: ArrayLike | None = None,
) -> NDArray[np.complex128]:
    """Evaluate ``amplitude`` at all points of x_axis × axis × axis, one plane of constant x at a time."""
    axis = np.asarray(axis_inv_A, dtype=np.float64)
    x_axis = axis if x_axis_inv_A is None else np.asarray(x_axis_inv_A, dtype=np.float64)
    n = len(axis)
    grid = np.empty((len(x_axis), n, n), dtype=np.complex128)
    plane = np.empty((n, n, 3))
    plane[..., 1] = axis[:, None]
    plane[..., 2] = axis[None, :]
    for i in steps(range(len(x_axis)), "Transform of the body"):
        plane[..., 0] = x_axis[i]
        grid[i] = amplitude(plane)
    return grid


def grid_spacing(axis_inv_A: ArrayLike) -> float:
    """Spacing of a uniform axis whose point n // 2 is zero, for even and odd n.

    >>> grid_spacing([-0.02, -0.01, 0.0, 0.01])
    0.01
    """
    axis = as_numbers(axis_inv_A, "a grid axis")
    hint = "Make it as (np.arange(n) - n // 2) * spacing."
    if axis.ndim != 1 or len(axis) == 0:
        raise OrienteerError(f"a grid axis must be a list of numbers, got shape {axis.shape}.", hint)
    spacing = float((axis[-1] - axis[0]) / (len(axis) - 1)) if len(axis) > 1 else 1.0
    expected = (np.arange(len(axis)) - len(axis) // 2) * spacing
    if not (spacing > 0 and np.allclose(axis, expected, rtol=0, atol=1e-6 * spacing)):
        raise OrienteerError(
            f"a grid axis must rise uniformly and be zero at index {len(axis) // 2}, "
            f"got one from {axis[0]:g} to {axis[-1]:g} in {len(axis)} points.",
            hint,
        )
    return spacing
