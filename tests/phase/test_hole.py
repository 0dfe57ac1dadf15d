"""The missing centre is bounded loosely: whatever body hides in it stays below the bound."""

import numpy as np
import pytest

from orienteer.particle.bodies import sphere
from orienteer.particle.named_bodies import random_blobs, two_domains, virus
from orienteer.particle.structure import blobs as gaussian_balls
from orienteer.phase.data import phasing_data
from orienteer.phase.settings import PhaseSettings
from orienteer.volume.volume import Volume

AXIS = np.arange(-15, 16) / 720.0
HARD = {"ball": sphere(150.0, 0.4), "virus": virus(300.0), "two domains": two_domains(300.0)}
SOFT = {
    "blobs": random_blobs(300.0, 30, 3),
    "soft": gaussian_balls(np.zeros((1, 3)), np.array([1e5]), np.array([60.0])),
    "softest": gaussian_balls(np.zeros((1, 3)), np.array([1e5]), np.array([75.0])),
}


@pytest.mark.parametrize("hole", [1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("name", [*HARD, *SOFT])
def test_the_amplitude_that_is_hidden_lies_below_the_bound(name, hole) -> None:
    amplitude = np.abs({**HARD, **SOFT}[name].amplitude_on_grid(AXIS))
    q = np.sqrt(AXIS[:, None, None] ** 2 + AXIS[:, None] ** 2 + AXIS**2)
    values = np.where((q >= hole / 300) & (q <= 0.02), amplitude**2, np.nan)
    settings = PhaseSettings(diameter_A=300.0)
    data = phasing_data(Volume(values, 1 / 720.0, "reciprocal"), settings, device="cpu")
    bound = -data.target[0, 0, 0]
    assert amplitude.max() < bound
    if name in HARD:
        assert bound < 20 * amplitude.max()


def test_the_hole_ends_at_the_first_shell_that_is_measured_by_half() -> None:
    from orienteer.phase.half_grid import radii
    from orienteer.phase.hole import hole_of_data

    measured = (radii(20) >= 3.5) & (radii(20) < 9)
    measured[5, 5, 5] = False  # far outside of the hole
    hole = hole_of_data(measured)
    assert (hole == (radii(20) < 3.5)).all()
