"""Slow and obvious: explicit matrices in float64 for what ``mtip`` does by fast transforms."""

from types import SimpleNamespace

import numpy as np
import pytest

from orienteer.orientation.quaternion import random_uniform, to_matrix


def voxels(n: int) -> np.ndarray:
    """Positions v = index - n // 2 of all voxels, (n^3, 3)."""
    v = np.arange(n) - n // 2
    return np.stack(np.meshgrid(v, v, v, indexing="ij"), -1).reshape(-1, 3)


def intensity_matrix(n: int, voxel_A: float, q_inv_A: np.ndarray) -> np.ndarray:
    """exp(2 pi i q_k.r_v), (M, n^3) complex128: intensities of autocorrelations."""
    return np.exp(2j * np.pi * voxel_A * q_inv_A @ voxels(n).T)


def ewald_points(n_side: int, q_max_inv_A: float, wavelength_A: float = 2.0) -> np.ndarray:
    """Scattering vectors (P, 3) of a square detector whose corners reach q_max."""
    side = np.linspace(-1, 1, n_side) * 0.3
    x, y = (a.ravel() for a in np.meshgrid(side, side))
    directions = np.stack([x, y, np.ones_like(x)], -1) / np.sqrt(1 + x**2 + y**2)[:, None]
    q = (directions - [0, 0, 1]) / wavelength_A
    return np.asarray(q * q_max_inv_A / np.linalg.norm(q, axis=1).max())


def random_turns(n: int, seed: int = 0) -> np.ndarray:
    """Transposes (n, 3, 3) of random rotations."""
    rotations = to_matrix(random_uniform(n, np.random.default_rng(seed)))
    return np.ascontiguousarray(np.swapaxes(rotations, 1, 2))


def turned(points: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """matrices[k] @ points[p], (K P, 3)."""
    return np.einsum("kij,pj->kpi", matrices, points).reshape(-1, 3)


def small_autocorrelation(n: int, radius: int = 2, seed: int = 0) -> np.ndarray:
    """The autocorrelation (n, n, n) of random positive blobs within a radius in voxels, largest value 1."""
    rng = np.random.default_rng(seed)
    axis = np.arange(n) - n // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    density = rng.random((n, n, n)) * (x**2 + y**2 + z**2 <= radius**2)
    intensity = np.abs(np.fft.fftn(density)) ** 2
    result = np.fft.fftshift(np.fft.ifftn(intensity).real)
    return np.asarray(result / result.max())


@pytest.fixture(scope="session")
def dense() -> SimpleNamespace:
    """All functions of this file, for tests."""
    functions = (voxels, intensity_matrix, ewald_points, random_turns, turned, small_autocorrelation)
    return SimpleNamespace(**{function.__name__: function for function in functions})
