"""A small experiment: an Ewald cap of points, rotations of all kinds, a rough volume."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.orientation.quaternion import random_uniform, to_matrix


@dataclass(frozen=True)
class Problem:
    volume: NDArray[np.float32]
    points: NDArray[np.float32]
    matrices: NDArray[np.float32]
    values: NDArray[np.float32]
    row_weights: NDArray[np.float32]
    pixel_weights: NDArray[np.float32]

    @property
    def n(self) -> int:
        return len(self.volume)

    @property
    def arguments(self) -> tuple[NDArray[np.float32], ...]:
        """What ``insert_slices`` takes after the sums."""
        return self.points, self.matrices, self.values, self.row_weights, self.pixel_weights


def _make_problem(n: int, n_rows: int, seed: int = 1) -> Problem:
    """A cap whose corners reach beyond an (n, n, n) cube."""
    rng = np.random.default_rng(seed)
    side = np.arange(n + 3) - (n + 3) / 2 + 0.3
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    radius = 2 * n + 3
    points = np.stack([x, y, np.sqrt(radius**2 - x**2 - y**2) - radius], axis=1)
    matrices = np.swapaxes(to_matrix(random_uniform(n_rows, seed=seed)), 1, 2)
    return Problem(
        rng.random((n, n, n), dtype=np.float32),
        points.astype(np.float32),
        np.ascontiguousarray(matrices, dtype=np.float32),
        rng.random((n_rows, len(points)), dtype=np.float32),
        rng.random(n_rows, dtype=np.float32) + np.float32(0.1),
        rng.random(len(points), dtype=np.float32) + np.float32(0.1),
    )


@pytest.fixture
def make_problem() -> Callable[..., Problem]:
    return _make_problem


@pytest.fixture(params=[(16, 5), (17, 37)], ids=["even", "odd"])
def problem(request: pytest.FixtureRequest) -> Problem:
    return _make_problem(*request.param)
