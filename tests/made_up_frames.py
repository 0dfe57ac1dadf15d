"""The frames of small reconstructions on several ranks, for scripts that tests start."""

from typing import Any

import orienteer
from orienteer.particle.named_bodies import random_blobs
from orienteer.source.in_memory import InMemorySource

DIAMETER_A = 200.0


def made_up_frames(n: int, n_pixels: int = 17, photons: float = 600.0, **settings: Any) -> InMemorySource:
    """n frames of n_pixels x n_pixels, with so many photons each; settings : of the simulation."""
    detector = orienteer.square_detector(
        n_pixels, edge_resolution_A=60.0, wavelength_A=2.5, pixel_size_m=5e-4
    )
    experiment = orienteer.simulate(
        random_blobs(DIAMETER_A, 12, 4), orienteer.Beam(wavelength_A=2.5), detector,
        orienteer.SimulateSettings(frames=n, photons_per_frame=photons, seed=3, **settings), device="cpu",
    )  # fmt: skip
    return InMemorySource(experiment.read(), detector.frame_shape).with_detector(detector)
