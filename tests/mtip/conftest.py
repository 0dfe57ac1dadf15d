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


@pytest.fixture(scope="session")
def frames_of_blobs() -> SimpleNamespace:
    """80 frames of 14 x 14 pixels of an object without symmetry, three speckles from centre to side.

    particle, source, and the intensity of the particle on a cube: ``intensity(edge, voxel_inv_A)``.
    """
    import orienteer
    from orienteer.fourier.sampled_transform import SampledTransform
    from orienteer.particle.named_bodies import random_blobs
    from orienteer.source.in_memory import InMemorySource

    particle = random_blobs(200.0, 20, 5)
    detector = orienteer.square_detector(14, edge_resolution_A=65.0, wavelength_A=2.5, pixel_size_m=5e-4)
    settings = orienteer.SimulateSettings(frames=80, photons_per_frame=1000, seed=3)
    experiment = orienteer.simulate(
        particle, orienteer.Beam(wavelength_A=2.5), detector, settings, device="cpu"
    )
    source = InMemorySource(experiment.read(), detector.frame_shape).with_detector(detector)

    def intensity(edge: int, voxel_inv_A: float) -> np.ndarray:
        axis = (np.arange(edge) - edge // 2) * voxel_inv_A
        points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
        transform = SampledTransform.from_particle(particle, 1.8 * edge / 2 * voxel_inv_A)
        return np.asarray(transform.intensity(points, np.eye(3)[None])[0].reshape((edge,) * 3))

    return SimpleNamespace(particle=particle, source=source, intensity=intensity)
