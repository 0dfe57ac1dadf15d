"""Structure: atoms in space, and the exact amplitude that they scatter."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import normalise, to_matrix
from orienteer.particle.base import scattering_vectors
from orienteer.particle.checked_numbers import as_numbers, as_numbers_for_each, as_vector_A
from orienteer.particle.labels import AtomLabels, join_labels
from orienteer.particle.scatterers import ScattererTable, gaussian_table, join_tables

# A scatterer is taken to end this many standard deviations of its broadest Gaussian from its centre.
_EXTENT_IN_SIGMAS = 6.0


@dataclass(frozen=True, eq=False)
class Structure:
    """Point-like scatterers with their form factors, occupancies and B factors.

    positions_A : (N, 3) Å.
    scatterer : (N,) row of ``table`` for each atom.
    table : the kinds of scatterers.
    occupancy : (N,), by default 1.
    b_factor_A2 : (N,) isotropic B, by default 0; an atom is damped by exp(−B |q|² / 4).
    labels : chain, residue and atom names, or None.
    remarks : sentences about what was left out or decided when the atoms were chosen.
    """

    positions_A: NDArray[np.float64]
    scatterer: NDArray[np.int64]
    table: ScattererTable
    occupancy: NDArray[np.float64] = None  # type: ignore[assignment]
    b_factor_A2: NDArray[np.float64] = None  # type: ignore[assignment]
    labels: AtomLabels | None = None
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        positions = as_numbers(self.positions_A, "positions_A")
        if positions.ndim != 2 or positions.shape[1] != 3 or len(positions) == 0:
            raise OrienteerError(
                f"a structure needs positions of shape (N, 3) with N > 0, got {positions.shape}."
            )
        n = len(positions)
        kinds = as_numbers(self.scatterer, "scatterer")
        if kinds.shape != (n,):
            raise OrienteerError(f"scatterer has shape {kinds.shape}, but there are {n} positions.")
        if not ((kinds >= 0) & (kinds < len(self.table)) & (kinds == np.round(kinds))).all():
            raise OrienteerError(
                f"scatterer must hold whole numbers in 0..{len(self.table) - 1}, "
                f"got {kinds.min():g} to {kinds.max():g}."
            )
        occupancy = 1.0 if self.occupancy is None else self.occupancy
        b_factor = 0.0 if self.b_factor_A2 is None else self.b_factor_A2
        columns = {
            "positions_A": positions,
            "scatterer": kinds.astype(np.int64),
            "occupancy": as_numbers_for_each(occupancy, "occupancy", n, "positions"),
            "b_factor_A2": as_numbers_for_each(b_factor, "b_factor_A2", n, "positions"),
        }
        for name, column in columns.items():
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if self.labels is not None and len(self.labels) != n:
            raise OrienteerError(f"there are {len(self.labels)} labels for {n} positions.")

    def __len__(self) -> int:
        return len(self.positions_A)

    def __repr__(self) -> str:
        atoms, electrons = counted(len(self), "atom"), f"{self.n_electrons:.0f} electrons"
        return f"Structure({atoms}, {electrons}, radius {self.radius_A:.1f} Å)"

    def __add__(self, other: "Structure") -> "Structure":
        """All scatterers of both."""
        return Structure(
            np.concatenate([self.positions_A, other.positions_A]),
            np.concatenate([self.scatterer, other.scatterer + len(self.table)]),
            join_tables(self.table, other.table),
            np.concatenate([self.occupancy, other.occupancy]),
            np.concatenate([self.b_factor_A2, other.b_factor_A2]),
            join_labels(self.labels, other.labels),
            self.remarks + other.remarks,
        )

    @property
    def electrons_per_atom(self) -> NDArray[np.float64]:
        """Electrons of each scatterer, occupancy included, (N,)."""
        return self.occupancy * self.table.n_electrons[self.scatterer]

    @property
    def n_electrons(self) -> float:
        """Electrons in all; F(0) without anomalous terms."""
        return float(self.electrons_per_atom.sum())

    @property
    def centre_A(self) -> NDArray[np.float64]:
        """Centre of the electrons, (3,) Å."""
        weights = np.abs(self.electrons_per_atom)
        if weights.sum() == 0:
            weights = np.ones(len(self))
        return np.asarray(weights @ self.positions_A / weights.sum())

    @property
    def radius_A(self) -> float:
        """All scatterers, their Gaussian tails to 6 σ included, lie within this distance of the origin."""
        variance = (self.table.broadest_width_A2[self.scatterer] + self.b_factor_A2) / (8 * np.pi**2)
        extent = _EXTENT_IN_SIGMAS * np.sqrt(np.maximum(variance, 0))
        return float((np.linalg.norm(self.positions_A, axis=1) + extent).max())

    def centred(self, centre_A: ArrayLike | None = None) -> "Structure":
        """Moved so that the electron-weighted centre (or the given point) lies at the origin."""
        return self.translated(-(self.centre_A if centre_A is None else as_vector_A(centre_A, "centre_A")))

    def translated(self, shift_A: ArrayLike) -> "Structure":
        """Moved by ``shift_A`` (3,) Å: F gains the phase exp(+2πi q·shift)."""
        return replace(self, positions_A=self.positions_A + as_vector_A(shift_A, "shift_A"))

    def rotated(self, quaternion: ArrayLike) -> "Structure":
        """Turned about the origin, r' = R r; its amplitude at q is that of the unturned structure at Rᵀ q."""
        unit = normalise(quaternion)
        if unit.shape != (4,):
            raise OrienteerError(
                f"a structure is turned by one quaternion, got shape {unit.shape}.", "Give (w, x, y, z)."
            )
        matrix = to_matrix(unit)
        return replace(self, positions_A=self.positions_A @ matrix.T)

    def selected(self, chosen: ArrayLike) -> "Structure":
        """Only the atoms of a boolean mask or of a list of indices."""
        keep = np.asarray(chosen)
        try:
            keep = np.arange(len(self))[keep]
        except IndexError as error:
            raise OrienteerError(
                f"atoms cannot be chosen from {counted(len(self), 'atom')}: {error}.",
                f"Give indices below {len(self)}, or true and false for each atom.",
            ) from error
        return Structure(
            self.positions_A[keep],
            self.scatterer[keep],
            self.table,
            self.occupancy[keep],
            self.b_factor_A2[keep],
            None if self.labels is None else self.labels[keep],
            self.remarks,
        )

    def without_anomalous_terms(self) -> "Structure":
        """The same atoms with f' = f'' = 0 at every photon energy, so that F obeys Friedel's law."""
        return replace(self, table=self.table.without_anomalous_terms())

    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        """F(q) by the direct sum over atoms in float64: slow and exact, the reference for faster methods.

        F(q) = Σ_j occupancy_j [f_j(|q|) + f'_j + i f''_j] exp(−B_j |q|²/4) exp(+2πi q·r_j)

        q_inv_A : (..., 3) 1/Å.
        photon_energy_eV : energy for the anomalous terms; None leaves them out.
        Returns (...,) complex128 electrons.
        """
        from orienteer.particle._structure_numba import sum_over_atoms

        q = scattering_vectors(q_inv_A)
        kind_and_b, group = np.unique(
            np.stack([self.scatterer.astype(np.float64), self.b_factor_A2], axis=1),
            axis=0,
            return_inverse=True,
        )
        group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        x, y, z = np.ascontiguousarray(self.positions_A[order].T)
        amplitude = np.empty(q.shape[:-1], dtype=np.complex128)
        sum_over_atoms(
            np.ascontiguousarray(q.reshape(-1, 3)), x, y, z, self.occupancy[order], group[order],
            kind_and_b[:, 0].astype(np.int64), kind_and_b[:, 1].copy(),
            self.table.amplitudes, self.table.widths_A2,
            self.table.anomalous_terms(photon_energy_eV), amplitude.reshape(-1),
        )  # fmt: skip
        return amplitude

    def amplitude_on_grid(
        self, axis_inv_A: ArrayLike, photon_energy_eV: float | None = None, eps: float = 1e-7
    ) -> NDArray[np.complex128]:
        """F on axis × axis × axis by non-uniform FFTs, to a relative error of about ``eps``.

        axis_inv_A : (n,) 1/Å, uniform, zero at n // 2.
        Returns (n, n, n) complex128 electrons, indexed [x, y, z].
        """
        from orienteer.particle.structure_on_grid import structure_on_grid

        if not 1e-12 <= eps <= 0.1:
            raise OrienteerError(f"eps must lie between 1e-12 and 0.1, got {eps}.", "The default is 1e-7.")
        return structure_on_grid(self, axis_inv_A, photon_energy_eV, eps)


def blobs(positions_A: ArrayLike, weights: ArrayLike, sigmas_A: ArrayLike) -> Structure:
    """Gaussian balls as a structure: F = Σ weight exp(−2π² σ² |q|²) exp(2πi q·r).

    positions_A : (N, 3) Å; weights : (N,) electrons; sigmas_A : one number or (N,) Å.

    >>> blobs([[0, 0, 0], [30, 0, 0]], [100, 50], 10).n_electrons
    150.0
    """
    positions = np.atleast_2d(as_numbers(positions_A, "positions_A"))
    electrons = as_numbers_for_each(weights, "weights", len(positions), "positions")
    sigmas = as_numbers_for_each(sigmas_A, "sigmas_A", len(positions), "positions")
    return Structure(positions, np.arange(len(positions)), gaussian_table(electrons, sigmas))
