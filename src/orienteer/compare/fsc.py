"""Fourier shell correlation: how well two densities agree at every resolution.

On the shell of radius q, with A and B the transforms of the two densities,

    FSC(q) = Re Σ A B* / sqrt(Σ |A|² Σ |B|²)

summed over the voxels of the shell (Harauz and van Heel 1986).  It is 1 where both are the same, and scatters
around 0 by 1 / sqrt(number of independent voxels) where they have nothing in common.  Transforms are float64:
the spectrum of a particle falls by many orders of magnitude, and rounding errors of float32 would exceed the
outer shells.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import n_shells
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.kernels import load_kernels
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError

_THREADS = 256
_LINES_OF_A_BLOCK = 32
# The power of a shell below this share of the strongest one is only rounding error.
_ROUNDING = 1e-26


@dataclass(frozen=True, eq=False)
class Fsc:
    """Agreement of two densities, shell by shell; shell s has the radius s / (n voxel_size).

    q_inv_A : (S,) float64, radius of each shell in 1/A.
    correlation : (S,) float64; NaN in shells in which one of the densities has no power.
    n_voxels : (S,) int64, independent voxels of the transform; q and -q count once.
    voxel_size_A : edge of a voxel of the densities.
    """

    q_inv_A: NDArray[np.float64]
    correlation: NDArray[np.float64]
    n_voxels: NDArray[np.int64]
    voxel_size_A: float

    @property
    def edge_A(self) -> float:
        """The finest resolution that the curve reaches, in A: two voxels or slightly more."""
        return float(1 / self.q_inv_A[-1]) if len(self.q_inv_A) > 1 else float("inf")


def fourier_shell_correlation(a: Array, b: Array, voxel_size_A: float = 1.0) -> Fsc:
    """The Fourier shell correlation of two densities on the same grid.

    a, b : (n, n, n) real, no NaN; both on the CPU or both on the GPU.
    voxel_size_A : edge of a voxel.

    >>> density = np.random.default_rng(1).random((8, 8, 8))
    >>> fourier_shell_correlation(density, 3 * density, 2.0).correlation.round(6)
    array([1., 1., 1., 1.])
    """
    n = check_density(a, "the first density")
    check_density(b, "the second density")
    if a.shape != b.shape:
        raise OrienteerError(
            f"densities of {n} and {b.shape[0]} voxels along an edge cannot be compared shell by shell.",
            "Bring them onto one grid first, with align_densities or resample.",
        )
    if not 0 < voxel_size_A < np.inf:
        raise OrienteerError(f"a voxel of {voxel_size_A} A has no size.")
    products, first, second = shell_products(half_transform(a), half_transform(b), n)
    power = first * second
    correlation = np.full(len(products), np.nan)
    strong = (first > _ROUNDING * first.max()) & (second > _ROUNDING * second.max())
    correlation[strong] = np.clip(products[strong] / np.sqrt(power[strong]), -1, 1)
    q = np.arange(len(products)) / (n * voxel_size_A)
    return Fsc(q, correlation, independent_voxels(n), float(voxel_size_A))


def check_density(values: Array, what: str = "the density") -> int:
    """Voxels along the edge of a density, checked to be a cube of finite numbers."""
    if values.ndim != 3 or len(set(values.shape)) != 1:
        raise OrienteerError(
            f"{what} has the shape {' x '.join(map(str, values.shape))}; a cube is needed.",
            "Pad it with zeros to a cube.",
        )
    xp = array_namespace(values)
    wrong = int(xp.sum(xp.astype(~xp.isfinite(values), xp.int64)))
    if wrong:
        voxels = counted(wrong, f"voxel of {what} holds", f"voxels of {what} hold")
        raise OrienteerError(f"{voxels} no finite number.", "Set voxels without a value to 0 first.")
    return int(values.shape[0])


def half_transform(values: Array) -> Array:
    """The transform of a real cube, (n, n, n // 2 + 1) complex128 in the order of the FFT."""
    xp = array_namespace(values)
    values = xp.astype(values, xp.float64)
    if is_on_gpu(values):
        return xp.fft.rfftn(values)
    import scipy.fft

    from orienteer.compute.machine import usable_cores

    return scipy.fft.rfftn(values, workers=usable_cores())


def from_half_transform(transform: Array, n: int) -> Array:
    """The real cube (n, n, n) float64 of a :func:`half_transform`."""
    xp = array_namespace(transform)
    if is_on_gpu(transform):
        return xp.fft.irfftn(transform, s=(n, n, n), axes=(0, 1, 2))
    import scipy.fft

    from orienteer.compute.machine import usable_cores

    return scipy.fft.irfftn(transform, s=(n, n, n), workers=usable_cores())


def half_radius(n: int, xp: Any = np) -> Array:
    """Distance from q = 0 of every voxel of a :func:`half_transform`, in voxels, (n, n, n // 2 + 1)."""
    whole, half = xp.asarray(np.fft.fftfreq(n, 1 / n) ** 2), xp.arange(n // 2 + 1, dtype=xp.float64) ** 2
    return xp.sqrt(whole[:, None, None] + whole[:, None] + half)


def within_shells(values: Array, end: int | None = None) -> Array:
    """The cube without the shells of its transform from ``end`` on, or without its corners, in float64."""
    xp = array_namespace(values)
    n = values.shape[0]
    inside = half_radius(n, xp) < (n_shells(n) if end is None else end) - 0.5
    return from_half_transform(xp.where(inside, half_transform(values), 0.0), n)


def shells_within(radius: float, n: int) -> int:
    """Number of shells that lie wholly inside a radius in voxels, the centre included; at least two.

    >>> shells_within(3.4, 20), shells_within(3.5, 20), shells_within(np.inf, 20)
    (3, 4, 10)
    """
    return max(2, min(n_shells(n), int(min(radius * (1 + 1e-6) + 0.5, n))))


def half_shells(n: int) -> NDArray[np.int64]:
    """Shell of every voxel of a :func:`half_transform`; beyond the last whole shell, its number + 1."""
    return np.asarray(np.minimum(np.floor(half_radius(n) + 0.5), n_shells(n)).astype(np.int64))


@lru_cache(maxsize=8)
def independent_voxels(n: int) -> NDArray[np.int64]:
    """Voxels of every shell of the transform of a real cube, q and -q counted once, (S,)."""
    S, axis = n_shells(n), np.fft.fftfreq(n, 1 / n).astype(np.int64) ** 2
    # Count the voxels of a plane by squared radius; then, for every step along z, add them to their shells.
    in_plane = np.bincount((axis[:, None] + axis).ravel())
    square = np.flatnonzero(in_plane)
    all_voxels = np.zeros(S + 1, dtype=np.int64)
    for step in axis:
        shell = np.minimum(np.floor(np.sqrt(square + step) + 0.5).astype(np.int64), S)
        all_voxels += np.bincount(shell, in_plane[square], S + 1).astype(np.int64)
    # In whole shells all voxels but the origin come in pairs q and -q.
    independent = (all_voxels[:S] + 1) // 2
    independent.setflags(write=False)
    return np.asarray(independent)


def shell_products(a: Array, b: Array, n: int) -> NDArray[np.float64]:
    """Σ Re A B*, Σ |A|² and Σ |B|² over each shell of the whole transform, (3, S) float64.

    a, b : (n, n, n // 2 + 1) complex128 of :func:`half_transform`.
    """
    S = n_shells(n)
    if is_on_gpu(a):
        xp = array_namespace(a)
        lines = n * n
        blocks = (lines + _LINES_OF_A_BLOCK - 1) // _LINES_OF_A_BLOCK
        sums = xp.zeros((blocks, 3, S), dtype=xp.float64)
        kernel = load_kernels(Path(__file__).with_name("fsc.cu")).get_function("shell_products")
        arguments = (
            xp.ascontiguousarray(a), xp.ascontiguousarray(b), np.int32(n), np.int32(S),
            np.int32(_LINES_OF_A_BLOCK), sums,
        )  # fmt: skip
        kernel((blocks,), (_THREADS,), arguments, shared_mem=3 * S * 8)
        return to_numpy(xp.sum(sums, axis=0))
    from orienteer.compare._fsc_numba import shell_products as twin

    sums = np.zeros((n, 3, S))
    twin(np.ascontiguousarray(a), np.ascontiguousarray(b), n, S, sums)
    return np.asarray(sums.sum(axis=0))
