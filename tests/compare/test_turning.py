"""A turned volume is the volume of the turned particle."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.shells import OUTSIDE, shell_index
from orienteer.compare.turning import CUBIC, LINEAR, filled, rotate_volume, sample, spline_coefficients
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import from_axis_angle, identity, random_uniform, to_matrix
from orienteer.particle.named_bodies import random_blobs

Intensity = Callable[..., NDArray[np.float64]]


@pytest.mark.parametrize("n", [40, 41])
@pytest.mark.parametrize(("order", "error"), [(LINEAR, 0.12), (CUBIC, 0.02)])
def test_turning_the_volume_equals_turning_the_particle(
    intensity_on_cube: Intensity, n: int, order: int, error: float
) -> None:
    body = random_blobs(100, 5, seed=3)
    quaternion = random_uniform(1, 7)[0]
    wanted = intensity_on_cube(body, n, 0.03, quaternion)
    found = rotate_volume(intensity_on_cube(body, n, 0.03), quaternion, order)
    whole = shell_index(n) != OUTSIDE
    assert np.linalg.norm((found - wanted)[whole]) < error * np.linalg.norm((wanted - wanted.mean())[whole])


@pytest.mark.parametrize("n", [6, 7])
def test_a_quarter_turn_moves_voxels_exactly(n: int) -> None:
    values = np.random.default_rng(1).random((n, n, n))
    found = rotate_volume(values, from_axis_angle([0, 0, 1], 90))
    centre = n // 2
    for x, y in ((1, 0), (2, 1), (-1, 2)):  # a quarter turn about z takes x to y
        turned = found[centre - y, centre + x]
        np.testing.assert_allclose(turned, values[centre + x, centre + y], atol=1e-12)


def test_holes_turn_with_the_rest_and_corners_become_unknown() -> None:
    n = 15
    values = np.random.default_rng(1).random((n, n, n)).astype(np.float32)
    hole = (slice(9, 12), slice(6, 9), slice(6, 9))
    values[hole] = np.nan
    found = rotate_volume(values, from_axis_angle([0, 0, 1], 90))
    assert found.dtype == np.float32
    assert np.isnan(found[6:9, 9:12, 6:9]).all()
    assert np.isnan(found).sum() == 27
    tilted = rotate_volume(values, from_axis_angle([1, 1, 0], 45))
    assert np.isnan(tilted[0, -1, 0])
    kept = rotate_volume(values, identity())
    np.testing.assert_allclose(kept[~np.isnan(values)], values[~np.isnan(values)], atol=1e-5)


def test_holes_are_filled_with_the_mean_of_their_shell() -> None:
    values = np.maximum(shell_index(9), 0) + 1.0
    holed = values.copy()
    holed[4, 4, 6] = holed[4, 4, 4] = np.nan
    result = filled(holed)
    assert result[4, 4, 6] == pytest.approx(3)
    assert result[4, 4, 4] == 0  # nothing else is in its shell
    assert filled(values) is values


def test_only_cubes_turn() -> None:
    with pytest.raises(OrienteerError, match="cube"):
        rotate_volume(np.zeros((3, 3, 4)), identity())


@pytest.mark.gpu
@pytest.mark.parametrize("order", [LINEAR, CUBIC])
def test_the_gpu_turns_alike(order: int) -> None:
    cupy = import_cupy()
    assert cupy is not None
    values = np.random.default_rng(1).random((12, 12, 12))
    values[3, 4, 5] = np.nan
    quaternion = random_uniform(1, 3)[0]
    here = rotate_volume(values, quaternion, order)
    there = rotate_volume(cupy.asarray(values), quaternion, order)
    # Linear ones are of single precision, in which other orders of sums differ.
    np.testing.assert_allclose(there.get(), here, rtol=0, atol=5e-7 if order == LINEAR else 1e-10)


@pytest.mark.parametrize("n", [7, 12])
def test_cubic_samples_are_those_of_scipy(n: int) -> None:
    from scipy.ndimage import map_coordinates

    draw = np.random.default_rng(2)
    values, points = draw.random((n, n, n)), draw.uniform(-n, n, (50, 3))
    matrices = to_matrix(random_uniform(3, 4))
    found = sample(spline_coefficients(values, CUBIC), points, matrices, CUBIC)
    places = np.einsum("kij,pj->ikp", matrices, points).reshape(3, -1) + n // 2
    wanted = map_coordinates(values, places, order=CUBIC, mode="mirror").reshape(3, -1)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
