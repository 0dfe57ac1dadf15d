"""SampledTransform against exact amplitudes and direct sums, to the error that was asked for."""

import time
from typing import Any

import numpy as np
import pytest

from orienteer.compute.arrays import to_numpy
from orienteer.errors import OrienteerError
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.particle.base import Particle
from orienteer.particle.bodies import Spheroid, sphere
from orienteer.particle.structure import blobs

WAVELENGTH_A = 2.7


def ewald_cap(q_corner_inv_A: float, n: int = 48) -> np.ndarray:
    """(n^2, 3) scattering vectors of a square detector whose corner pixel reaches q_corner."""
    side = np.linspace(-1, 1, n) * 0.4
    x, y = np.meshgrid(side, side)
    direction = np.stack([x, y, np.ones_like(x)], -1) / np.sqrt(x**2 + y**2 + 1)[..., None]
    q = (direction - [0, 0, 1]).reshape(-1, 3)
    return np.asarray(q * q_corner_inv_A / np.linalg.norm(q, axis=1).max())


def atoms_on_a_shell() -> Particle:
    """The worst case: all density at the rim of the ball that the grid was made for."""
    rng = np.random.default_rng(3)
    direction = rng.standard_normal((80, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    return blobs(60 * direction, rng.uniform(3, 9, 80), 0.8)


def off_centre_atoms() -> Particle:
    rng = np.random.default_rng(4)
    return blobs(rng.normal(0, 12, (60, 3)) + np.array([30, -10, 5]), rng.uniform(3, 9, 60), 0.8)


BODIES: dict[str, Any] = {
    "sphere": lambda: sphere(80),
    "spheroid": lambda: Spheroid((30, 60, 90)),
    "shell": atoms_on_a_shell,
    "off centre": off_centre_atoms,
    "one atom": lambda: blobs([[0, 0, 0]], [6], 0.5),
}


def relative_error(found: Any, exact: Any) -> float:
    return float(np.linalg.norm(to_numpy(found) - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("body", BODIES)
def test_fields_and_intensities_keep_the_error_asked_for(body: str, error: float) -> None:
    particle = BODIES[body]()
    points = ewald_cap(0.1)
    matrices = to_matrix(random_uniform(4, seed=1))
    transform = SampledTransform.from_particle(particle, 0.1, error=error)
    exact = particle.amplitude(np.einsum("kij,pj->kpi", matrices, points))
    assert relative_error(transform.field(points, matrices), exact) < error
    assert relative_error(transform.intensity(points, matrices), np.abs(exact) ** 2) < error


def test_the_error_is_kept_where_the_signal_is_weak_too() -> None:
    particle = atoms_on_a_shell()
    points = ewald_cap(0.1)
    outer = points[np.linalg.norm(points, axis=1) > 0.08]
    matrices = to_matrix(random_uniform(4, seed=2))
    transform = SampledTransform.from_particle(particle, 0.1, error=1e-4)
    exact = np.abs(particle.amplitude(np.einsum("kij,pj->kpi", matrices, outer))) ** 2
    assert relative_error(transform.intensity(outer, matrices), exact) < 1e-4


@pytest.mark.parametrize("width", [3, 4, 5, 6, 7, 8])
def test_every_width_keeps_the_error(width: int) -> None:
    particle = off_centre_atoms()
    points, matrices = ewald_cap(0.06), to_matrix(random_uniform(3, seed=5))
    transform = SampledTransform.from_particle(particle, 0.06, error=2e-3, width=width)
    assert transform.kernel.width == width
    exact = particle.amplitude(np.einsum("kij,pj->kpi", matrices, points))
    assert relative_error(transform.field(points, matrices), exact) < 2e-3


@pytest.mark.parametrize("n", [12, 13])
def test_a_density_on_voxels_gives_its_direct_sum(n: int) -> None:
    rng = np.random.default_rng(n)
    density, voxel_A = rng.standard_normal((n, n, n)) + 1j * rng.standard_normal((n, n, n)), 3.0
    direction = rng.standard_normal((500, 3))
    q = direction / np.linalg.norm(direction, axis=1)[:, None] * rng.uniform(0, 0.28, (500, 1))
    r = (np.arange(n) - n // 2) * voxel_A
    x, y, z = (np.exp(2j * np.pi * np.outer(q[:, axis], r)) for axis in range(3))
    exact = np.einsum("xyz,px,py,pz->p", density, x, y, z, optimize=True) * voxel_A**3
    for error in (1e-3, 1e-5):
        transform = SampledTransform.from_density(density, voxel_A, error=error)
        assert relative_error(transform.field(q, np.eye(3))[0], exact) < error


def test_a_density_agrees_with_a_non_uniform_fft() -> None:
    finufft = pytest.importorskip("finufft")
    rng = np.random.default_rng(7)
    n, voxel_A = 32, 2.0
    density = rng.random((n, n, n)).astype(np.complex128)
    q = rng.uniform(-0.14, 0.14, (3, 2000))
    exact = finufft.nufft3d2(*(2 * np.pi * voxel_A * q), density, isign=+1, eps=1e-12) * voxel_A**3
    transform = SampledTransform.from_density(density.real, voxel_A, q_max_inv_A=0.25, error=1e-5)
    assert relative_error(transform.field(q.T, np.eye(3))[0], exact) < 1e-5


def test_the_matrix_carries_rotation_wavelength_and_size() -> None:
    particle = off_centre_atoms()
    cap = ewald_cap(0.1)
    R = to_matrix(random_uniform(1, seed=8))[0]
    turned = particle.rotated(random_uniform(1, seed=8)[0])  # type: ignore[attr-defined]
    transform = SampledTransform.from_particle(particle, 0.1, error=1e-5)
    found = transform.field(cap * WAVELENGTH_A, 0.7 * R.T / WAVELENGTH_A)
    assert relative_error(found[0], turned.amplitude(0.7 * cap)) < 1e-5


def test_points_may_differ_for_each_matrix() -> None:
    transform = SampledTransform.from_particle(sphere(40), 0.1)
    cap, matrices = ewald_cap(0.08, 12), to_matrix(random_uniform(3, seed=9))
    points = np.stack([cap, 0.5 * cap, cap[::-1]])
    together = transform.field(points, matrices)
    for k in range(3):
        np.testing.assert_array_equal(together[k], transform.field(points[k], matrices[k])[0])


def test_scale_weights_and_sums_enter_once() -> None:
    transform = SampledTransform.from_particle(sphere(40), 0.1)
    cap, matrices = ewald_cap(0.08, 12), to_matrix(random_uniform(2, seed=10))
    rng = np.random.default_rng(1)
    plain = transform.intensity(cap, matrices)
    np.testing.assert_allclose(plain, np.abs(transform.field(cap, matrices)) ** 2, rtol=1e-5)
    scale, weights = rng.random(144), np.array([2.0, 5.0])
    out = np.full((2, 144), 3.0, np.float32)
    result = transform.intensity(cap, matrices, scale, weights, out, add=True)
    assert result is out
    np.testing.assert_allclose(out, 3 + plain * scale * weights[:, None], rtol=1e-5)
    scales = rng.random((2, 144))
    np.testing.assert_allclose(transform.intensity(cap, matrices, scales), plain * scales, rtol=1e-5)


def test_results_do_not_depend_on_the_batch_or_on_threads() -> None:
    import numba

    transform = SampledTransform.from_particle(sphere(40), 0.1)
    cap, matrices = ewald_cap(0.1, 40), to_matrix(random_uniform(6, seed=11))
    whole = transform.intensity(cap, matrices)
    parts = np.concatenate([transform.intensity(cap, matrices[:1]), transform.intensity(cap, matrices[1:])])
    np.testing.assert_array_equal(whole, parts)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(whole, transform.intensity(cap, matrices))
    finally:
        numba.set_num_threads(before)


def test_points_beyond_the_limit_and_points_that_are_no_numbers_are_nan() -> None:
    transform = SampledTransform.from_particle(sphere(40), 0.1)
    q = np.array([[0.1, 0, 0], [0, 0, -0.1], [0.1001, 0, 0], [1e300, 0, 0], [np.nan, 0, 0], [0, np.inf, 0]])
    values = transform.field(q, np.eye(3))[0]
    assert np.isfinite(values[:2]).all()
    assert np.isnan(values[2:]).all()
    assert np.isnan(transform.intensity(q, np.eye(3))[0, 2:]).all()


@pytest.mark.parametrize(
    ("points", "matrices"),
    [((5, 2), (1, 3, 3)), ((3, 5, 3), (2, 3, 3)), ((5, 3), (2, 3, 2)), ((5,), (3, 3))],
)
def test_wrong_shapes_are_errors_that_name_them(points: tuple[int, ...], matrices: tuple[int, ...]) -> None:
    transform = SampledTransform.from_particle(sphere(40), 0.1)
    with pytest.raises(OrienteerError, match="matrices"):
        transform.field(np.zeros(points), np.zeros(matrices))


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(OrienteerError, match="error"):
        SampledTransform.from_particle(sphere(40), 0.1, error=1e-9)
    with pytest.raises(OrienteerError, match="q_max"):
        SampledTransform.from_particle(sphere(40), -1.0)
    with pytest.raises(OrienteerError, match="width"):
        SampledTransform.from_particle(sphere(40), 0.1, error=1e-6, width=3)
    with pytest.raises(OrienteerError, match="width"):
        SampledTransform.from_particle(sphere(40), 0.1, width=9)
    with pytest.raises(OrienteerError, match="not finite"):
        SampledTransform.from_density(np.full((4, 4, 4), np.nan), 2.0)
    with pytest.raises(OrienteerError, match="voxel"):
        SampledTransform.from_density(np.zeros((4, 4, 4)), 0.0)
    with pytest.raises(OrienteerError, match="cube"):
        SampledTransform.from_density(np.zeros((3, 4, 5)), 2.0)
    transform = SampledTransform.from_particle(sphere(40), 0.1)
    with pytest.raises(OrienteerError, match="out"):
        transform.intensity(np.zeros((4, 3)), np.eye(3), out=np.zeros((1, 4)))
    with pytest.raises(OrienteerError, match="order"):
        transform.intensity(np.zeros((4, 3)), np.eye(3), order=np.arange(3, dtype=np.int32))


@pytest.mark.parametrize(
    "particle", [blobs([[5000, 0, 0]], [100], 2.0), sphere(10_000)], ids=["off centre", "20 000 A"]
)
def test_grids_that_do_not_fit_in_memory_are_refused_before_they_are_made(particle: Particle) -> None:
    start = time.perf_counter()
    with pytest.raises(
        OrienteerError, match=r"radius (5,012|10,000) A up to 0\.5 1/A needs about \S+ GiB"
    ) as refusal:
        SampledTransform.from_particle(particle, 0.5)
    assert "centre the particle" in refusal.value.hint
    assert time.perf_counter() - start < 5


def test_what_fits_depends_on_the_memory_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    density = np.ones((40, 40, 40))
    SampledTransform.from_density(density, 2.0)
    monkeypatch.setattr("orienteer.fourier.gridding.memory_GiB", lambda: (1.0, 0.001))
    with pytest.raises(OrienteerError, match=r"0\.001 GiB are free"):
        SampledTransform.from_density(density, 2.0)
    with pytest.raises(OrienteerError, match=r"0\.001 GiB are free"):
        SampledTransform.from_particle(sphere(40), 0.1)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [3, 4, 5, 6, 7, 8])
def test_both_twins_agree(width: int) -> None:
    import cupy

    transform = SampledTransform.from_particle(atoms_on_a_shell(), 0.1, error=2e-3, width=width)
    on_gpu = transform.to("cuda")
    cap, matrices = ewald_cap(0.1, 40), to_matrix(random_uniform(7, seed=12))
    cap[5] = [1, 1, 1]
    for order in (None, cupy.asarray(np.random.default_rng(0).permutation(len(cap)), dtype=np.int32)):
        field = on_gpu.field(cap, matrices, order=order).get()
        expected_field = transform.field(cap, matrices)
        np.testing.assert_array_equal(np.isnan(field), np.isnan(expected_field))
        assert relative_error(np.nan_to_num(field), np.nan_to_num(expected_field)) < 1e-6
        intensity = on_gpu.intensity(cap, matrices, np.arange(1600), np.arange(7), order=order).get()
        expected = transform.intensity(cap, matrices, np.arange(1600), np.arange(7))
        good = np.isfinite(expected)
        np.testing.assert_array_equal(good, np.isfinite(intensity))
        assert relative_error(intensity[good], expected[good]) < 1e-5
