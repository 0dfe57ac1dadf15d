"""Geometries that the tests of this folder share, all written for them."""

import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel


@pytest.fixture
def tilted_detector() -> Detector:
    """Two tilted panels in different groups, a gap in the frame, a mask of all levels, an efficiency."""
    cosine, sine = np.cos(0.3), np.sin(0.3)
    panels = [
        Panel(
            "p0",
            (0.001, -0.002, 0.1),
            (2e-4, 0, 0),
            (0, 3e-4 * cosine, 3e-4 * sine),
            (3, 5),
            0,
            groups=("all", "left"),
        ),
        Panel("p1", (-0.004, 0.001, 0.1), (0, 2e-4, 0), (2e-4, 0, 0), (4, 5), 20, groups=("all", "right")),
    ]
    random = np.random.default_rng(1)
    return Detector(
        panels,
        frame_shape=(8, 5),
        mask=random.integers(0, 3, 40),
        efficiency=random.uniform(0.5, 1, 40),
        name="two tilted panels",
        collections={"sides": ("left", "right")},
    )


@pytest.fixture
def box_around_the_sample() -> Detector:
    """Six square panels that close a cube of 0.2 m around the sample."""
    n, half = 48, 0.1
    step = 2 * half / n
    axes = np.eye(3)
    panels: list[Panel] = []
    for normal in range(3):
        fast, slow = axes[(normal + 1) % 3], axes[(normal + 2) % 3]
        for sign in (-1, 1):
            origin = sign * half * axes[normal] - half * fast - half * slow
            name = f"n{normal}{'+' if sign > 0 else '-'}"
            panels.append(Panel(name, origin, step * fast, step * slow, (n, n), len(panels) * n * n))
    return Detector(panels, frame_shape=(6, n, n), name="box")
