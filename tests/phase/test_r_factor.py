"""The R-factor is 0 for the right density, whatever its scale, phases and background."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.phase.half_grid import half_grid_shells, transform_of, voxel_counts
from orienteer.phase.r_factor import r_factor

Blobs = Callable[..., NDArray[np.float64]]
Everywhere = Callable[[int], NDArray[np.bool_]]


def test_the_density_of_the_data_has_none(blobs: Blobs, everywhere: Everywhere) -> None:
    transform = transform_of(blobs(16))
    amplitudes = 3 * np.sqrt(np.abs(transform) ** 2 + 2.0)
    assert r_factor(np.conj(transform), amplitudes, everywhere(16), 0.01, background=2.0).overall < 1e-12
    assert r_factor(transform, amplitudes, everywhere(16), 0.01).overall > 0.1


@pytest.mark.parametrize("n", [9, 10])
def test_it_is_that_of_the_whole_grid(n: int) -> None:
    rng = np.random.default_rng(0)
    transform = transform_of(rng.normal(size=(n, n, n)))
    amplitudes = np.abs(transform) * rng.uniform(0.8, 1.2, transform.shape)
    measured = np.array(half_grid_shells(n) > 1)
    found = r_factor(transform, np.where(measured, amplitudes, np.nan), measured, 0.01)
    use = np.where(measured & (half_grid_shells(n) >= 0), voxel_counts(n), 0)
    length = np.abs(transform)
    scale = (use * length * amplitudes).sum() / (use * length**2).sum()
    expected = (use * np.abs(scale * length - amplitudes)).sum() / (use * amplitudes).sum()
    assert found.overall == pytest.approx(expected)
    assert found.q_inv_A[0] == pytest.approx(0.02)
    assert 0.02 < found.by_shell.min() <= found.by_shell.max() < 0.2


def test_an_empty_density_is_refused(everywhere: Everywhere) -> None:
    with pytest.raises(OrienteerError, match="zero wherever"):
        r_factor(np.zeros((8, 8, 5), complex), np.ones((8, 8, 5)), everywhere(8), 0.01)
