"""Analytic bodies: closed forms against known values, sums of voxels and each other."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from orienteer.errors import OrienteerError
from orienteer.particle.base import Particle, fill_grid
from orienteer.particle.bodies import Part, Spheroid, Sum, ball_transform, core_shell, sphere
from orienteer.particle.structure import blobs


def test_bodies_are_particles() -> None:
    assert isinstance(sphere(10), Particle)
    assert isinstance(core_shell([10, 20], [1, 2]), Particle)


@pytest.mark.parametrize("q", [0.0, 1e-6, 1e-3, 0.004, 0.02, 0.1])
def test_a_sphere_has_the_transform_of_its_radial_integral(q: float) -> None:
    radius, density = 60.0, 0.4
    expected, _ = quad(lambda r: 4 * np.pi * r**2 * np.sinc(2 * q * r) * density, 0, radius, epsabs=1e-9)
    amplitude = sphere(radius, density).amplitude([0.6 * q, 0, 0.8 * q])
    assert amplitude == pytest.approx(expected, rel=1e-11, abs=1e-7)


def test_the_rings_of_a_sphere_are_dark_where_tan_u_equals_u() -> None:
    radius = 150.0
    body = sphere(radius)
    for zero in (4.493409457909064, 7.725251836937707, 10.904121659428899):
        dark_q = zero / (2 * np.pi * radius)
        found = brentq(lambda q: body.amplitude([0, q, 0]).real, 0.98 * dark_q, 1.02 * dark_q, xtol=1e-12)
        assert found == pytest.approx(dark_q, rel=1e-7)


def test_the_ball_transform_is_smooth_where_its_series_ends() -> None:
    u = np.array([0.5 - 1e-9, 0.5 + 1e-9])
    below, above = ball_transform(u)
    assert below == pytest.approx(above, rel=1e-9)
    assert ball_transform(np.array([0.0])) == 1.0


def test_a_spheroid_is_a_stretched_sphere(rng: np.random.Generator) -> None:
    body = Spheroid((20.0, 30.0, 50.0), density=2.0)
    q = rng.normal(size=(40, 3)) * 0.01
    inside = rng.uniform(-1, 1, size=(200_000, 3))
    inside = inside[(inside**2).sum(axis=1) < 1] * [20, 30, 50]
    sampled = 2.0 * body.volume_A3 * np.exp(2j * np.pi * q @ inside.T).mean(axis=1)
    np.testing.assert_allclose(body.amplitude(q), sampled, atol=0.01 * 2 * body.volume_A3)
    assert body.radius_A == 50


def test_layers_add_up_to_their_electrons_and_equal_layers_to_one_sphere(rng: np.random.Generator) -> None:
    layered = core_shell([30, 50, 60], [0.3, 0.0, 0.5])
    volumes = 4 / 3 * np.pi * np.array([30**3, 50**3 - 30**3, 60**3 - 50**3])
    assert layered.amplitude([0, 0, 0]) == pytest.approx(volumes @ [0.3, 0, 0.5])
    q = rng.normal(size=(30, 3)) * 0.02
    np.testing.assert_allclose(core_shell([30, 60], [0.4, 0.4]).amplitude(q), sphere(60, 0.4).amplitude(q))
    assert layered.radius_A == 60


def test_a_sum_moves_and_scales_its_parts(rng: np.random.Generator) -> None:
    body = Sum((Part(sphere(30)), Part(sphere(10), scale=-0.5, offset_A=(5.0, -10.0, 3.0))))
    q = rng.normal(size=(30, 3)) * 0.02
    phase = np.exp(2j * np.pi * q @ [5, -10, 3])
    expected = sphere(30).amplitude(q) - 0.5 * phase * sphere(10).amplitude(q)
    np.testing.assert_allclose(body.amplitude(q), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 8, 9])
def test_grids_hold_the_values_of_the_closed_form(n: int) -> None:
    axis = (np.arange(n) - n // 2) * 0.004
    lopsided = Sum(
        (Part(Spheroid((20, 30, 50))), Part(blobs([[9, 1, 2]], [500], 4), 2.0, (12.0, 3.0, -40.0)))
    )
    for body in (sphere(40), lopsided):
        grid = body.amplitude_on_grid(axis)
        expected = fill_grid(axis, body.amplitude)
        assert grid.shape == (n, n, n)
        np.testing.assert_allclose(grid, expected, atol=1e-6 * abs(expected).max())
        index = (0, n // 3, n - 1)
        assert expected[index] == body.amplitude(axis[list(index)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: sphere(0),
        lambda: sphere(-3),
        lambda: Spheroid((1, 2, np.nan)),
        lambda: core_shell([3, 2], [1, 1]),
        lambda: core_shell([], []),
        lambda: Sum(()),
    ],
)
def test_impossible_bodies_are_refused(make) -> None:
    with pytest.raises(OrienteerError):
        make()
