"""Simulated streams that the tests of hits share: most shots are empty, and some of the hits are junk."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from orienteer.detector.beam import Beam
from orienteer.detector.square import square_detector
from orienteer.particle.polyhedron import icosahedron
from orienteer.simulation.experiment import Experiment
from orienteer.simulation.settings import SimulateSettings
from orienteer.source.patterns import Patterns

BEAM = Beam(photon_energy_eV=6000)
DIAMETER_A = 400.0
# Pixels on a side, and the resolution at the edge: four pixels for each speckle, eight speckles to the edge.
SIDE, EDGE_A = 64, 50.0


@cache
def simulated(frames: int = 3000, seed: int = 1, **imperfections: Any) -> tuple[Experiment, Patterns]:
    """A stream with 10 % hits, of which 30 % are junk or several particles; made once a session.

    Signal and background have 300 photons each, unless the imperfections say otherwise.
    """
    settings = {
        "frames": frames,
        "seed": seed,
        "photons_per_frame": 300.0,
        "background_photons": 300.0,
        "empty_fraction": 0.9,
        "junk_fraction": 0.02,
        "multiple_fraction": 0.01,
        **imperfections,
    }
    detector = square_detector(
        SIDE, pixel_size_m=2e-4, edge_resolution_A=EDGE_A, wavelength_A=BEAM.wavelength_A
    )
    particle = icosahedron(DIAMETER_A)
    experiment = Experiment(particle, BEAM, detector, SimulateSettings(**settings), device="cpu")
    return experiment, experiment.read()


@pytest.fixture(scope="session")
def stream() -> Callable[..., tuple[Experiment, Patterns]]:
    """``stream(background_jitter=0.3)`` gives an experiment and its frames; see ``simulated``."""
    return simulated


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(11)
