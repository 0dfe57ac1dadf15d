"""The amplitude of a structure on a uniform grid, by non-uniform fast Fourier transforms.

Atoms of one kind and one B factor share the profile f(|q|) exp(−B |q|²/4); together they scatter this profile
times one transform of their positions.  A structure has many (kind, B) pairs, but their profiles are so alike
that every one is a linear combination of a few.  An interpolative decomposition picks these few and gives
their shares in each atom.  Only one transform per picked profile is then needed, usually 3 to 12, whatever
the number of B factors.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.progress import steps
from orienteer.particle.base import grid_spacing

if TYPE_CHECKING:
    from orienteer.particle.scatterers import ScattererTable
    from orienteer.particle.structure import Structure

_BATCH_BYTES = 2**30  # memory for the transforms of one call, which makes at least one
_MOST_CANDIDATES = 1024  # profiles from which the first choice is made
_CHUNK = 4096  # profiles represented together


def structure_on_grid(
    structure: "Structure", axis_inv_A: ArrayLike, photon_energy_eV: float | None, eps: float
) -> NDArray[np.complex128]:
    """F of the structure on axis × axis × axis, (n, n, n) complex128; see ``Structure.amplitude_on_grid``."""
    import finufft

    if not 1e-12 <= eps <= 1e-1:
        raise ValueError(f"eps must lie between 1e-12 and 0.1, got {eps}")
    axis = np.asarray(axis_inv_A, dtype=np.float64)
    spacing = grid_spacing(axis)
    n = len(axis)
    anomalous = structure.table.anomalous_terms(photon_energy_eV)
    # exp(2πi q·r) on the grid has period 1 / spacing in x, y and z, so whole turns may be dropped.
    turns = spacing * structure.positions_A
    x, y, z = np.ascontiguousarray(2 * np.pi * (turns - np.round(turns)).T)

    picked, shares = pick_profiles(structure, axis, anomalous, eps / 4)
    grid = np.zeros((n, n, n), dtype=np.complex128)
    n_batch = max(1, min(len(picked), _BATCH_BYTES // (16 * n**3)))
    # Most of the memory goes into finufft's finer internal grid; 1.25 is the smaller one of its two choices.
    oversampling = 1.25 if eps >= 1e-8 else 2.0
    for start in steps(range(0, len(picked), n_batch), "Transform of the atoms"):
        batch = slice(start, min(start + n_batch, len(picked)))
        strengths = np.ascontiguousarray(shares[batch] * structure.occupancy).astype(np.complex128)
        transforms = finufft.nufft3d1(
            x, y, z, strengths, (n, n, n), eps=eps / 4, isign=+1, upsampfac=oversampling
        ).reshape(-1, n, n, n)
        for (kind, b_factor), transform in zip(picked[batch], transforms, strict=True):
            _add_with_profile(
                grid, transform, axis, structure.table, int(kind), b_factor, anomalous[int(kind)]
            )
    return grid


def pick_profiles(
    structure: "Structure", axis_inv_A: NDArray[np.float64], anomalous: NDArray[np.complex128], error: float
) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """The few (kind, B) pairs whose profiles span those of all atoms, and each atom's share of them.

    error : largest deviation of any profile, relative to the largest value of all profiles.
    Returns the picked pairs (M, 2) and the shares (M, N): profile of atom j = Σ_m shares[m, j] profile_m.
    """
    from scipy.linalg import qr, solve_triangular

    pairs, pair_of_atom = np.unique(
        np.stack([structure.scatterer, structure.b_factor_A2], axis=1), axis=0, return_inverse=True
    )
    q = _sample_radii(axis_inv_A)
    candidates = _spread_choice(len(pairs))
    tolerance = error / 2
    while True:
        profiles = _profiles(pairs[candidates], structure.table, anomalous, q)
        scale = float(np.abs(profiles).max())
        triangle, order = qr(profiles, mode="r", pivoting=True)
        rank = int(np.count_nonzero(np.abs(np.diagonal(triangle)) > tolerance * scale))
        picked = pairs[candidates[order[:rank]]]
        basis = _profiles(picked, structure.table, anomalous, q)
        if rank:  # 0 if no scatterer has any strength
            orthonormal, triangle = qr(basis, mode="economic")
        shares = np.empty((rank, len(pairs)), dtype=np.complex128)
        deviation = np.empty(len(pairs))
        for start in range(0, len(pairs), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            wanted = _profiles(pairs[chunk], structure.table, anomalous, q)
            if rank:
                shares[:, chunk] = solve_triangular(triangle, orthonormal.conj().T @ wanted)
            deviation[chunk] = np.abs(basis @ shares[:, chunk] - wanted).max(axis=0)
        if deviation.max() <= error * scale or rank == min(len(q), len(pairs)):
            return picked, shares[:, pair_of_atom.reshape(-1)]
        # Add the worst represented pairs to the candidates, and pick with a smaller tolerance.
        candidates = np.union1d(candidates, np.argsort(deviation)[-_MOST_CANDIDATES // 8 :])
        tolerance /= 4


def _sample_radii(axis_inv_A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of |q| at which profiles are compared: 0, and from the grid spacing to the grid's corner."""
    corner = np.sqrt(3) * float(np.abs(axis_inv_A).max())
    if corner == 0:
        return np.zeros(1)
    least = grid_spacing(axis_inv_A)
    return np.unique(np.concatenate([[0.0], np.geomspace(least, corner, 100), np.linspace(0, corner, 150)]))


def _spread_choice(n: int) -> NDArray[np.int64]:
    """At most ``_MOST_CANDIDATES`` evenly spaced numbers of 0..n−1; the pairs are sorted by kind, then B."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_CANDIDATES)).round().astype(np.int64))


def _profiles(
    pairs: NDArray[np.float64],
    table: "ScattererTable",
    anomalous: NDArray[np.complex128],
    q: NDArray[np.float64],
) -> NDArray[np.complex128]:
    """(f + f' + i f'') exp(−B q²/4) of each pair, (n_q, n_pairs)."""
    kinds = pairs[:, 0].astype(np.int64)
    unique_kinds, row = np.unique(kinds, return_inverse=True)
    quarter_q2 = q[:, None, None] ** 2 / 4
    form = (table.amplitudes[unique_kinds] * np.exp(-table.widths_A2[unique_kinds] * quarter_q2)).sum(axis=2)
    damping = np.exp(-pairs[:, 1] * quarter_q2[:, 0])
    return np.asarray((form + anomalous[unique_kinds])[:, row] * damping)


def _add_with_profile(
    grid: NDArray[np.complex128],
    transform: NDArray[np.complex128],
    axis: NDArray[np.float64],
    table: "ScattererTable",
    kind: int,
    b_factor: float,
    anomalous: complex,
) -> None:
    """grid += profile × transform, where each Gaussian of the profile is a product over x, y and z."""
    from orienteer.particle._structure_numba import add_with_gaussians

    amplitudes = np.append(table.amplitudes[kind].astype(np.complex128), anomalous)
    widths = np.append(table.widths_A2[kind], 0.0) + b_factor
    used = amplitudes != 0
    along = np.exp(-widths[used] * axis[:, None] ** 2 / 4)
    add_with_gaussians(grid, transform, along, amplitudes[used])
