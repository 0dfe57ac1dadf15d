"""The frames of small reconstructions on several ranks, for scripts that tests start."""

import hashlib
import os
from pathlib import Path
from typing import Any

import orienteer
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

DIAMETER_A = 200.0


def made_up_frames(n: int, n_pixels: int = 17, photons: float = 600.0, **settings: Any) -> InMemorySource:
    """n frames of n_pixels x n_pixels, with so many photons each; settings : of the simulation."""
    detector = orienteer.square_detector(
        n_pixels, edge_resolution_A=60.0, wavelength_A=2.5, pixel_size_m=5e-4
    )
    settings |= {"frames": n, "photons_per_frame": photons, "seed": 3}
    patterns = _simulated_once(detector, settings)
    return InMemorySource(patterns, detector.frame_shape).with_detector(detector)


def _simulated_once(detector: Any, settings: dict[str, Any]) -> Patterns:
    """Ranks take what the first of them has simulated, from the folder that their test has made for it."""
    folder = os.environ.get("MADE_UP_FRAMES")
    if folder is None:
        return _simulated(detector, settings)
    from compiled_once import alone_with

    name = hashlib.sha256(repr((detector.frame_shape, sorted(settings.items()))).encode()).hexdigest()[:16]
    file = Path(folder) / f"{name}.h5"
    with alone_with(str(file)):
        if not file.exists():
            with orienteer.writer_for(file, detector=detector) as writer:
                writer.append(_simulated(detector, settings))
    return orienteer.open(file).read()


def _simulated(detector: Any, settings: dict[str, Any]) -> Patterns:
    from orienteer.particle.named_bodies import random_blobs

    experiment = orienteer.simulate(
        random_blobs(DIAMETER_A, 12, 4), orienteer.Beam(wavelength_A=2.5), detector,
        orienteer.SimulateSettings(**settings), device="cpu",
    )  # fmt: skip
    return experiment.read()
