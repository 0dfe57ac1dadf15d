"""The classic mistakes of diffraction simulations, each against an independent calculation."""

import numpy as np
import pytest
from scipy.optimize import brentq

from orienteer.detector.beam import Beam
from orienteer.detector.detector import Detector
from orienteer.detector.square import square_detector
from orienteer.orientation.quaternion import compose, random_uniform, to_matrix
from orienteer.particle.base import Particle
from orienteer.particle.bodies import sphere
from orienteer.particle.structure import blobs
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings

BEAM = Beam(photon_energy_eV=4600, fluence_per_um2=1e12)
WIDE = square_detector(48, pixel_size_m=0.004, distance_m=0.1)  # 44 degrees to the edge
SMALL = square_detector(32, pixel_size_m=0.001, distance_m=0.1)
IDENTITY = np.array([[1.0, 0, 0, 0]])
R_E_A = 2.8179403e-5


def three_blobs() -> Particle:
    return blobs([[25, 3, -8], [-14, 17, 2], [4, -9, 21]], [900, 500, 700], [1.5, 2, 1])


def expected(
    particle: Particle, detector: Detector, orientations: np.ndarray, accuracy: float = 1e-5
) -> np.ndarray:
    settings = SimulateSettings(frames=len(orientations), accuracy=accuracy)
    experiment = Experiment(particle, BEAM, detector, settings, device="cpu", orientations=orientations)
    return np.asarray(experiment.expected(experiment.truth()), np.float64)


def test_a_turned_particle_equals_turned_atoms_in_absolute_photons() -> None:
    particle, orientations = three_blobs(), random_uniform(20, seed=1)
    found = expected(particle, WIDE, orientations)
    x, y, z = WIDE.positions_m.T
    r = np.sqrt(x**2 + y**2 + z**2)
    q = np.stack([x / r, y / r, z / r - 1], 1) / BEAM.wavelength_A
    photons = 1e12 / 1e8 * R_E_A**2 * (1 - (x / r) ** 2) * (0.004**2 * z / r**3)
    for k, R in enumerate(to_matrix(orientations)):
        F = np.zeros(len(q), complex)
        for position, weight, sigma in zip(
            [[25, 3, -8], [-14, 17, 2], [4, -9, 21]], [900, 500, 700], [1.5, 2, 1], strict=True
        ):
            damping = np.exp(-2 * np.pi**2 * sigma**2 * (q**2).sum(1))
            F += weight * damping * np.exp(2j * np.pi * q @ (R @ np.array(position)))
        exact = np.abs(F) ** 2 * photons
        assert np.linalg.norm(found[k] - exact) < 1e-5 * np.linalg.norm(exact)


def test_the_minima_of_a_sphere_lie_where_the_curved_ewald_sphere_puts_them() -> None:
    radius_A, n, pixel_m, distance_m = 28.0, 257, 0.00075, 0.1
    detector = square_detector(n, pixel_size_m=pixel_m, distance_m=distance_m)
    row = expected(sphere(radius_A), detector, IDENTITY)[0].reshape(n, n)[n // 2, n // 2 :]
    row /= detector.correction("x").reshape(n, n)[n // 2, n // 2 :]
    # |F| changes sign at a minimum; with the sign put back it passes through zero in a straight line.
    amplitude = np.sqrt(row)
    sign = np.ones_like(amplitude)
    for p in range(1, len(row) - 1):
        if row[p] <= row[p - 1] and row[p] < row[p + 1]:
            sign[p + (row[p - 1] > row[p + 1]) :] *= -1
    signed = amplitude * sign
    where = np.flatnonzero(signed[1:] * signed[:-1] < 0)
    found = where + signed[where] / (signed[where] - signed[where + 1])

    zeros = np.array(
        [brentq(lambda u: np.sin(u) - u * np.cos(u), k * np.pi, (k + 0.5) * np.pi) for k in range(1, 9)]
    )
    q = zeros / (2 * np.pi * radius_A)
    exact = distance_m * np.tan(2 * np.arcsin(q * BEAM.wavelength_A / 2)) / pixel_m
    exact = exact[exact < n // 2 - 1]
    assert len(exact) >= 5
    np.testing.assert_allclose(found[: len(exact)], exact, atol=0.1)
    flat = q[: len(exact)] * BEAM.wavelength_A * distance_m / pixel_m
    assert abs(flat - exact).max() > 3, "the detector is too far away to show the curvature"


def test_two_atoms_along_the_beam_make_rings_by_the_curvature_alone() -> None:
    distance_A = 40.0
    particle = blobs([[0, 0, distance_A / 2], [0, 0, -distance_A / 2]], [1000, 1000], 0.01)
    pattern = expected(particle, WIDE, IDENTITY)[0] / WIDE.correction("x")
    pattern /= pattern.max()
    q_z = WIDE.q_inv_A(BEAM.wavelength_A)[:, 2]
    np.testing.assert_allclose(pattern, np.cos(np.pi * q_z * distance_A) ** 2, atol=1e-3)
    assert pattern.min() < 0.01


def test_a_wide_angle_pattern_is_not_its_own_half_turn() -> None:
    far = square_detector(48, pixel_size_m=0.004, distance_m=20.0)
    for detector, differs in ((WIDE, True), (far, False)):
        picture = (expected(three_blobs(), detector, IDENTITY)[0] / detector.correction("x")).reshape(48, 48)
        difference = np.linalg.norm(picture - picture[::-1, ::-1]) / np.linalg.norm(picture)
        assert (difference > 0.1) == differs


def test_an_object_that_scatters_evenly_shows_the_corrections_once() -> None:
    detector = WIDE.with_efficiency(np.linspace(0.3, 1, WIDE.n_pixels))
    flat = expected(blobs([[0, 0, 0]], [1000], 0.0), detector, random_uniform(3, seed=2), accuracy=1e-6)
    photons = (
        1000**2 * 1e4 * R_E_A**2 * detector.solid_angle_sr * detector.polarisation("x") * detector.efficiency
    )
    assert np.linalg.norm(flat - photons) < 1e-6 * np.linalg.norm(np.broadcast_to(photons, flat.shape))
    np.testing.assert_allclose(flat, np.broadcast_to(photons, flat.shape), rtol=5e-6)


@pytest.mark.parametrize("readout", ["counting", "integrating"])
def test_dead_pixels_are_masked_and_change_nothing_else(readout: str) -> None:
    common = {
        "frames": 6,
        "photons_per_frame": 3000,
        "readout": readout,
        "background_photons": 50,
        "noise_adu": 0.1 if readout == "integrating" else 0.0,
    }
    dead = Experiment(
        three_blobs(),
        BEAM,
        SMALL,
        SimulateSettings(**common, dead_pixel_fraction=0.2),
        device="cpu",  # type: ignore[arg-type]
    )
    masked = dead.detector.mask == 2
    assert 0.1 < masked.mean() < 0.3
    assert (SMALL.mask == 0).all()
    frames = dead.patterns(0, 6).dense()
    assert np.isnan(frames[:, masked]).all() if readout == "integrating" else not frames[:, masked].any()
    # The same photons fall on the live pixels when the fluence is the same.
    same = SimulateSettings(**{**common, "photons_per_frame": 0, "background_photons": 0})  # type: ignore[arg-type]
    plain = Experiment(three_blobs(), BEAM, SMALL, same, device="cpu")
    dead = Experiment(
        three_blobs(), BEAM, SMALL, same.model_copy(update={"dead_pixel_fraction": 0.2}), device="cpu"
    )
    np.testing.assert_array_equal(
        plain.patterns(0, 6).dense()[:, ~masked], dead.patterns(0, 6).dense()[:, ~masked]
    )


def test_an_inverted_particle_gives_the_same_patterns_but_a_mirrored_one_needs_another_orientation() -> None:
    """Intensities know no hand: inversion changes nothing, so a mirror image is only a half turn."""
    positions, weights, sigmas = (
        np.array([[25, 3, -8], [-14, 17, 2], [4, -9, 21]]),
        [900, 500, 700],
        [1.5, 2, 1],
    )
    orientations = random_uniform(3, seed=2)
    found = expected(blobs(positions, weights, sigmas), WIDE, orientations)
    inverted = expected(blobs(-positions, weights, sigmas), WIDE, orientations)
    np.testing.assert_allclose(inverted, found, rtol=1e-3, atol=1e-6 * found.max())
    mirrored = blobs(positions * [1, 1, -1], weights, sigmas)
    assert np.linalg.norm(expected(mirrored, WIDE, orientations) - found) > 0.1 * np.linalg.norm(found)
    half_turn_about_z = np.array([0.0, 0, 0, 1])  # a mirror in z is an inversion after half a turn about z
    turned = compose(orientations, half_turn_about_z)
    np.testing.assert_allclose(expected(mirrored, WIDE, turned), found, rtol=1e-3, atol=1e-6 * found.max())
