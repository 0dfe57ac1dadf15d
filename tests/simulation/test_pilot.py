"""Pilot shots: the mean photons of a hit under everything that differs from hit to hit."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from orienteer.detector.beam import Beam
from orienteer.detector.spectrum import SaseSpectrum
from orienteer.detector.square import square_detector
from orienteer.orientation.quaternion import random_uniform
from orienteer.particle.bodies import Part, Spheroid, Sum, sphere
from orienteer.particle.conformations import Ensemble
from orienteer.particle.structure import blobs
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.pilot import REPLICATES, pilot_shots
from orienteer.simulation.settings import SimulateSettings

BEAM = Beam(photon_energy_eV=4600)
DETECTOR = square_detector(24, pixel_size_m=0.004, distance_m=0.2, beam_stop_radius_pixels=1.5)
RODS = Ensemble(
    (Spheroid((15, 15, 60)), Sum((Part(sphere(20)), Part(sphere(15), offset_A=(40, 0, 0))))),
    np.array([0.3, 0.7]),
)


def experiment(particles: Any = RODS, beam: Beam = BEAM, **settings: Any) -> Experiment:
    given = SimulateSettings(**{"accuracy": 1e-3, "photons_per_frame": 1000, **settings})
    return Experiment(particles, beam, DETECTOR, given, device="cpu")


@pytest.mark.parametrize(("spread", "jitter_m"), [(0.3, 0.0), (0.3, 0.002), (0.1, 0.02)])
def test_the_mean_over_sizes_and_centres_equals_a_quadrature(spread: float, jitter_m: float) -> None:
    body = sphere(30)
    made = experiment(body, size_spread=spread, centre_jitter_m=jitter_m)
    sigma = np.sqrt(np.log1p(spread**2))
    z = np.linspace(-4, 4, 25)
    probability = stats.norm.pdf(z) * (z[1] - z[0])
    probability[[0, -1]] = probability[[0, -1]] / 2 + stats.norm.sf(4)  # what lies beyond is cut off to 4
    sizes = np.exp(sigma * z - sigma**2 / 2)
    # Steps of a pixel or less: what falls into the beam stop and over the edge is not smooth.
    node = np.linspace(-3.5, 3.5, 36 if jitter_m > 0.01 else 15) if jitter_m else np.zeros(1)
    share = stats.norm.pdf(node)
    used = DETECTOR.mask < 2
    mean = 0.0
    for x, share_x in zip(node, share / share.sum(), strict=True):
        for y, share_y in zip(node, share / share.sum(), strict=True):
            if share_x * share_y < 2e-5:
                continue
            moved = DETECTOR.moved((-x * jitter_m, -y * jitter_m, 0))
            q, correction = moved.q_inv_A(BEAM.wavelength_A)[used], moved.correction("x")[used]
            photons = [s**6 * (np.abs(body.amplitude(s * q)) ** 2 @ correction) for s in sizes]
            mean += share_x * share_y * float(probability @ photons)
    assert made.photons_per_fluence_r_e2 == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"size_spread": 0.3, "centre_jitter_m": 0.004},
        {"size_spread": 0.1, "fluence_jitter": 0.3, "spectrum": SaseSpectrum(0.05, 3)},
    ],
)
def test_the_photons_asked_for_are_the_mean_of_the_hits(more: dict[str, Any]) -> None:
    beam = Beam(photon_energy_eV=4600, spectrum=more.pop("spectrum", None))
    made = experiment(beam=beam, frames=1024, **more)
    photons = made.expected(made.truth(0, 1024)).sum(1)
    assert photons.mean() == pytest.approx(1000, abs=4 * photons.std() / np.sqrt(1024) + 10)


def test_orientations_that_are_given_are_those_of_the_mean() -> None:
    pair = blobs([[0, 0, 30], [0, 0, -30]], [1000, 1000], 2.0)
    settings = SimulateSettings(frames=2, photons_per_frame=500, poisson=False)
    given = random_uniform(2, seed=4)
    made = Experiment(pair, BEAM, DETECTOR, settings, device="cpu", orientations=given)
    assert made.expected(made.truth()).sum(1).mean() == pytest.approx(500, rel=0.01)


def test_pilot_shots_cover_what_the_experiment_draws() -> None:
    sampler = experiment(size_spread=0.2, centre_jitter_m=0.001).truth_sampler
    parts = [pilot_shots(sampler, replicate, 0, 512) for replicate in range(REPLICATES)]
    weight = np.concatenate([weight for _, weight in parts])
    mean = {
        name: np.concatenate([getattr(shots, name) for shots, _ in parts])
        for name in ("orientation", "particle_class", "size", "offset_m")
    }
    assert weight.mean() == pytest.approx(1, abs=0.02)
    assert np.average(mean["size"][:, 0], weights=weight) == pytest.approx(1, abs=0.02)
    assert np.average(mean["particle_class"][:, 0]) == pytest.approx(0.7, abs=0.01)
    assert mean["offset_m"].std(0) == pytest.approx([1e-3, 1e-3], rel=0.02)
    q = mean["orientation"][:, 0]
    np.testing.assert_allclose(np.einsum("ni,nj->ij", q, q) / len(q), np.eye(4) / 4, atol=5e-3)
