"""Scatterers: form factors as sums of Gaussians, one row of a table per kind of atom."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.particle.checked_numbers import as_numbers, as_numbers_for_each, as_positive


@dataclass(frozen=True, eq=False)
class ScattererTable:
    """Form factors f(q) = Σ_g amplitude_g exp(−width_g |q|² / 4), plus f' + i f'' at the photon energy.

    A width is defined like a B factor: a Gaussian of standard deviation σ has width 8π²σ², and the
    constant term of a tabulated form factor has width 0.

    names : T names, such as "C" or "blob".
    amplitudes : (T, G) electrons; unused places are 0.
    widths_A2 : (T, G) Å².
    atomic_numbers : (T,) the element whose anomalous terms apply; 0 for none.
    elements : T chemical elements, "" for scatterers that are not atoms.
    """

    names: tuple[str, ...]
    amplitudes: NDArray[np.float64]
    widths_A2: NDArray[np.float64]
    atomic_numbers: NDArray[np.int64]
    elements: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_electrons(self) -> NDArray[np.float64]:
        """Electrons of each kind, f(0) without anomalous terms, (T,)."""
        return np.asarray(self.amplitudes.sum(axis=1))

    @property
    def broadest_width_A2(self) -> NDArray[np.float64]:
        """Width of the broadest Gaussian of each kind, (T,) Å²."""
        return np.asarray(np.where(self.amplitudes != 0, self.widths_A2, 0.0).max(axis=1, initial=0.0))

    def anomalous_terms(self, photon_energy_eV: float | None) -> NDArray[np.complex128]:
        """f' + i f'' of every kind at the photon energy, (T,); zeros if the energy is None.

        Calculated by the method of Cromer and Liberman for elements 3 to 92; zero for all others.
        """
        terms = np.zeros(len(self), dtype=np.complex128)
        if photon_energy_eV is None:
            return terms
        as_positive(photon_energy_eV, "photon_energy_eV", "eV", "Give None to leave anomalous terms out.")
        import gemmi

        for kind, number in enumerate(self.atomic_numbers):
            if number > 0:
                terms[kind] = complex(*gemmi.cromer_liberman(z=int(number), energy=float(photon_energy_eV)))
        return terms

    def without_anomalous_terms(self) -> "ScattererTable":
        """The same form factors with f' = f'' = 0 at every energy."""
        return replace(self, atomic_numbers=np.zeros_like(self.atomic_numbers))


def element_table(elements: Iterable[str]) -> ScattererTable:
    """One row per chemical element, from the International Tables (1992): four Gaussians and a constant.

    Each row is scaled (by less than 0.1 %) so that f(0) is exactly the atomic number: F(0) of a structure is
    then its number of electrons.  Deuterium scatters like hydrogen; ions are treated as neutral atoms.

    >>> element_table(["C", "Zn"]).n_electrons.round(9)
    array([ 6., 30.])
    """
    import gemmi

    names = tuple(elements)
    rows = [gemmi.Element(name) for name in names]
    unknown = [
        name
        for name, element in zip(names, rows, strict=True)
        if element.atomic_number == 0 or element.it92 is None
    ]
    if unknown:
        raise OrienteerError(
            f"no form factor is tabulated for {', '.join(repr(name) for name in unknown)}.",
            "Give chemical elements from H to Cf, or D.",
        )
    amplitudes = np.array([[*element.it92.a, element.it92.c] for element in rows]).reshape(-1, 5)
    widths = np.array([[*element.it92.b, 0.0] for element in rows]).reshape(-1, 5)
    numbers = np.array([element.atomic_number for element in rows], dtype=np.int64)
    amplitudes *= (numbers / amplitudes.sum(axis=1))[:, None]
    return ScattererTable(names, amplitudes, widths, numbers, tuple(element.name for element in rows))


def gaussian_table(weights: ArrayLike, sigmas_A: ArrayLike, name: str = "blob") -> ScattererTable:
    """One row per Gaussian ball: f = weight exp(−2π² σ² |q|²), weights in electrons, σ in Å."""
    amplitudes = np.atleast_1d(as_numbers(weights, "weights"))
    n = len(amplitudes)
    sigmas = as_numbers_for_each(sigmas_A, "sigmas_A", n, "weights")
    if not (sigmas >= 0).all():
        raise OrienteerError(f"the sigma of a blob must not be negative, got {sigmas.min():g} Å.")
    widths = 8 * np.pi**2 * sigmas**2
    numbers = np.zeros(n, dtype=np.int64)
    return ScattererTable((name,) * n, amplitudes[:, None], widths[:, None], numbers, ("",) * n)


def join_tables(first: ScattererTable, second: ScattererTable) -> ScattererTable:
    """The rows of both tables, first then second."""
    n_gaussians = max(first.amplitudes.shape[1], second.amplitudes.shape[1])

    def padded(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.pad(rows, ((0, 0), (0, n_gaussians - rows.shape[1])))

    return ScattererTable(
        first.names + second.names,
        np.concatenate([padded(first.amplitudes), padded(second.amplitudes)]),
        np.concatenate([padded(first.widths_A2), padded(second.widths_A2)]),
        np.concatenate([first.atomic_numbers, second.atomic_numbers]),
        first.elements + second.elements,
    )
