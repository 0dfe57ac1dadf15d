"""A small object without symmetry, for the tests of phasing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.particle.named_bodies import two_domains
from orienteer.phase.data import PhasingData
from orienteer.phase.half_grid import density_of, frequencies
from orienteer.volume.volume import Volume

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


class Body(NamedTuple):
    """An intensity and the density behind it.

    intensity : on (n, n, n), NaN where it is not measured.
    transform : (n, n, n) complex128, of the density, centred as the intensity.
    diameter_A, volume_A3 : of the body.
    """

    intensity: Volume
    transform: NDArray[np.complex128]
    diameter_A: float
    volume_A3: float


@pytest.fixture(scope="session")
def body() -> Callable[..., Body]:
    """``body()``: the intensity of a body of two domains, 100 A long.

    speckles : from the centre to the edge; hole : radius of the missing centre in speckles.
    oversampling : box over diameter; noise : relative; background : in mean intensities; even : box.
    """

    def make(
        speckles: float = 7.0,
        hole: float = 0.0,
        oversampling: float = 2.4,
        noise: float = 0.0,
        background: float = 0.0,
        even: bool = False,
    ) -> Body:
        particle = two_domains(100.0)
        voxel = 1 / (oversampling * 100.0)
        half = round(speckles * oversampling) + 1
        axis = np.arange(-half, half + (0 if even else 1)) * voxel
        transform = particle.amplitude_on_grid(axis)
        q = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
        measured = (q <= speckles / 100.0) & (q >= hole / 100.0)
        values = np.abs(transform) ** 2
        values = values + background * values[measured].mean()
        values = values * (1 + noise * np.random.default_rng(5).normal(size=values.shape))
        volume = Volume(np.where(measured, values, np.nan), voxel, space="reciprocal")
        filled = 4 / 3 * np.pi * 100.0**3 * (0.16 * 0.2 * 0.32 + 0.1 * 0.22 * 0.14)
        return Body(volume, transform, 100.0, filled)

    return make


def _transform_on_grid(transform: NDArray[Any], data: PhasingData) -> NDArray[np.complex64]:
    whole, half = frequencies(data.n)
    reach = transform.shape[0] // 2
    result = np.zeros((data.n, data.n, data.n // 2 + 1), np.complex64)
    x, z = np.flatnonzero(np.abs(whole) < reach), np.flatnonzero(half < reach)
    places = whole[x].astype(int) + reach
    result[np.ix_(x, x, z)] = transform[np.ix_(places, places, half[z].astype(int) + reach)].conj()
    return result


@pytest.fixture(scope="session")
def transform_on_grid() -> Callable[..., NDArray[np.complex64]]:
    """``transform_on_grid(transform, data)``: a centred transform on the half-grid of the data."""
    return _transform_on_grid


@pytest.fixture(scope="session")
def truth_of() -> Callable[..., NDArray[np.float32]]:
    """``truth_of(body, data)``: the true density on the grid of the data; where it lies does not matter."""
    return lambda made, data: density_of(_transform_on_grid(made.transform, data))
