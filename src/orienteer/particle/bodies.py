"""Analytic bodies of uniform density with exact transforms: spheres, spheroids, layers, and sums of any."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.base import Particle, fill_grid, grid_spacing, remarks_of, scattering_vectors
from orienteer.particle.checked_numbers import as_numbers, as_vector_A

# Electrons per Å³ of dry protein, 1.35 g/cm³.
PROTEIN_DENSITY = 0.43


class Body(ABC):
    """A particle of real density: F(−q) is the conjugate of F(q), and the photon energy does not matter."""

    @property
    @abstractmethod
    def radius_A(self) -> float:
        """The body lies within this distance of the origin."""

    @abstractmethod
    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        """F(q) in closed form, (..., 3) 1/Å to (...,) electrons."""

    def amplitude_on_grid(
        self, axis_inv_A: ArrayLike, photon_energy_eV: float | None = None
    ) -> NDArray[np.complex128]:
        """F on axis × axis × axis (uniform, zero at n // 2): (n, n, n), half of it from F(−q) = F(q)*."""
        spacing = grid_spacing(axis_inv_A)
        n = len(np.asarray(axis_inv_A))
        half = n // 2
        # A symmetric axis, one point longer than the wanted one when n is even.
        axis = np.arange(-half, half + 1) * spacing
        grid = np.empty((2 * half + 1,) * 3, dtype=np.complex128)
        grid[: half + 1] = fill_grid(axis, self.amplitude, axis[: half + 1])
        grid[half + 1 :] = grid[:half][::-1, ::-1, ::-1].conj()
        return grid[:n, :n, :n]


@dataclass(frozen=True)
class Spheroid(Body):
    """An ellipsoid of uniform density with its axes along x, y and z.

    semi_axes_A : the three half-lengths, Å.
    density : electrons per Å³.

    F(q) = density · volume · 3 (sin u − u cos u) / u³,  u = 2π |(a q_x, b q_y, c q_z)|
    """

    semi_axes_A: tuple[float, float, float]
    density: float = PROTEIN_DENSITY

    def __post_init__(self) -> None:
        if len(self.semi_axes_A) != 3 or not all(np.isfinite(a) and a > 0 for a in self.semi_axes_A):
            raise OrienteerError(f"a spheroid needs three positive semi-axes in Å, got {self.semi_axes_A}.")
        as_numbers(self.density, "the density of a spheroid")

    @property
    def radius_A(self) -> float:
        return float(max(self.semi_axes_A))

    @property
    def volume_A3(self) -> float:
        return float(4 / 3 * np.pi * np.prod(self.semi_axes_A))

    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        u = 2 * np.pi * np.linalg.norm(scattering_vectors(q_inv_A) * np.asarray(self.semi_axes_A), axis=-1)
        return (self.density * self.volume_A3 * ball_transform(u)).astype(np.complex128)


def sphere(radius_A: float, density: float = PROTEIN_DENSITY) -> Spheroid:
    """A ball of uniform density: its rings are dark where tan u = u, u = 2π |q| radius.

    >>> round(float(sphere(100.0, density=1.0).amplitude([0, 0, 0]).real) / 1e6, 4)
    4.1888
    """
    return Spheroid((radius_A, radius_A, radius_A), density)


def core_shell(radii_A: Sequence[float], densities: Sequence[float]) -> "Sum":
    """Concentric layers, inside first: ``densities[i]`` fills from ``radii_A[i-1]`` (or 0) to ``radii_A[i]``.

    radii_A : rising, Å; densities : electrons per Å³, one per layer.
    """
    if len(radii_A) != len(densities) or not radii_A or any(np.diff(radii_A) <= 0):
        raise OrienteerError(
            "layers need rising radii and one density each, "
            f"got radii {list(radii_A)} and densities {list(densities)}."
        )
    steps = np.append(np.asarray(densities[:-1]) - np.asarray(densities[1:]), densities[-1])
    if not steps.any():
        raise OrienteerError(
            f"layers of densities {list(densities)} scatter nothing.",
            "Give at least one layer a density.",
        )
    return Sum(
        tuple(Part(sphere(r, float(step))) for r, step in zip(radii_A, steps, strict=True) if step != 0)
    )


@dataclass(frozen=True)
class Part:
    """One particle of a sum, multiplied by ``scale`` and moved by ``offset_A``; a scale of −1 cuts a hole."""

    particle: Particle
    scale: float = 1.0
    offset_A: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        as_numbers(self.scale, "the scale of a part")
        as_vector_A(self.offset_A, "offset_A")


@dataclass(frozen=True)
class Sum:
    """Several particles as one: F = Σ scale F_part(q) exp(2πi q·offset)."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise OrienteerError("a sum of particles needs at least one part.")

    @property
    def radius_A(self) -> float:
        return max(part.particle.radius_A + float(np.linalg.norm(part.offset_A)) for part in self.parts)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out or decided when the parts were made, each sentence once."""
        return tuple(dict.fromkeys(remark for part in self.parts for remark in remarks_of(part.particle)))

    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        q = scattering_vectors(q_inv_A)
        total = np.zeros(q.shape[:-1], dtype=np.complex128)
        for part in self.parts:
            phase = np.exp(2j * np.pi * (q @ np.asarray(part.offset_A, dtype=np.float64)))
            total += part.scale * phase * part.particle.amplitude(q, photon_energy_eV)
        return total

    def amplitude_on_grid(
        self, axis_inv_A: ArrayLike, photon_energy_eV: float | None = None
    ) -> NDArray[np.complex128]:
        grid_spacing(axis_inv_A)
        axis = np.asarray(axis_inv_A, dtype=np.float64)
        total = np.zeros((len(axis),) * 3, dtype=np.complex128)
        for part in self.parts:
            grid = part.particle.amplitude_on_grid(axis, photon_energy_eV)
            x, y, z = (np.exp(2j * np.pi * axis * shift) for shift in part.offset_A)
            for i in range(len(axis)):
                total[i] += grid[i] * (part.scale * x[i] * y[:, None] * z)
        return total


def ball_transform(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Transform of the unit ball divided by its volume, 3 (sin u − u cos u) / u³, also exact for small u."""
    small = np.abs(u) < 0.5
    safe = np.where(small, 1.0, u)
    s = np.where(small, u, 0.0) ** 2
    # Σ_k 3 (−u²)^k / (2^k k! (2k+3)!!); eight terms leave < 1e-19 at u = 0.5.
    series, term = np.ones_like(s), np.ones_like(s)
    for k in range(1, 8):
        term = term * -s / (2 * k * (2 * k + 3))
        series = series + term
    return np.where(small, series, 3 * (np.sin(safe) - safe * np.cos(safe)) / safe**3)
