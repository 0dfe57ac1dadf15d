"""Intensities of particles on a cube."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.orientation.quaternion import identity, to_matrix
from orienteer.particle.base import Particle

Intensity = Callable[..., NDArray[np.float64]]


@pytest.fixture
def intensity_on_cube() -> Intensity:
    """``intensity_on_cube(particle, n, q_max_inv_A, quaternion)``: exact |F|^2 of the turned particle.

    (n, n, n); the last whole shell is at q_max.
    """

    def compute(
        particle: Particle, n: int, q_max_inv_A: float, quaternion: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        axis = (np.arange(n) - n // 2) * q_max_inv_A / ((n - 1) // 2)
        q = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
        turn = to_matrix(identity() if quaternion is None else quaternion)
        return np.abs(particle.amplitude(q @ turn)) ** 2  # row vectors times R are R^T q

    return compute
