"""A small object without symmetry, for the tests of phasing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Blobs = Callable[..., NDArray[np.float64]]
Everywhere = Callable[[int], NDArray[np.bool_]]


@pytest.fixture
def blobs() -> Blobs:
    """``blobs(n)``: a few Gaussians around the centre of a box (n, n, n); also ``seed=`` and ``at=``."""

    def make(n: int, seed: int = 0, at: Any = (0.0, 0.0, 0.0)) -> NDArray[np.float64]:
        rng = np.random.default_rng(seed)
        axis = np.arange(n) - n // 2
        density = np.zeros((n, n, n))
        for _ in range(6):
            x, y, z = rng.uniform(-0.15, 0.15, 3) * n + at
            width = rng.uniform(1.5, 2.0)
            square = (axis[:, None, None] - x) ** 2 + (axis[:, None] - y) ** 2 + (axis - z) ** 2
            density += rng.uniform(0.5, 1.5) * np.exp(-square / (2 * width**2))
        return density

    return make


@pytest.fixture
def everywhere() -> Everywhere:
    """``everywhere(n)``: every voxel of the half-grid is measured."""
    return lambda n: np.ones((n, n, n // 2 + 1), bool)
