"""Another grid shows the same density."""

import numpy as np
import pytest

from orienteer.compare.resampling import resample
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError


def blobs(n: int, voxel_size: float) -> np.ndarray:
    """Two smooth blobs, as they are on any grid."""
    x, y, z = (np.indices((n, n, n)) - n // 2) * voxel_size
    return np.exp(-((x - 3) ** 2 + y**2 + z**2) / 18) + np.exp(-(x**2 + (y + 4) ** 2 + (z - 2) ** 2) / 12)


@pytest.mark.parametrize(("n", "voxel"), [(32, 2.0), (33, 1.5), (48, 1.1), (21, 2.3)])
@pytest.mark.parametrize(("new_n", "new_voxel"), [(32, 1.7), (25, 2.1)])
def test_a_smooth_density_is_the_same_on_any_grid(n: int, voxel: float, new_n: int, new_voxel: float) -> None:
    found = resample(blobs(n, voxel), voxel, new_n, new_voxel)
    np.testing.assert_allclose(found, blobs(new_n, new_voxel), atol=3e-3)


@pytest.mark.parametrize("n", [6, 7])
def test_the_same_grid_changes_nothing(n: int) -> None:
    values = np.random.default_rng(1).random((n, n, n))
    np.testing.assert_allclose(resample(values, 1.3, n, 1.3), values, atol=1e-12)


def test_there_and_back_is_nothing_lost() -> None:
    values = np.random.default_rng(1).random((9, 9, 9))
    there = resample(values, 2.0, 27, 2.0 / 3)
    np.testing.assert_allclose(there[1::3, 1::3, 1::3], values, atol=1e-12)
    np.testing.assert_allclose(resample(there, 2.0 / 3, 9, 2.0), values, atol=1e-9)


def test_a_larger_box_is_empty_outside_and_a_smaller_one_cuts() -> None:
    values = np.random.default_rng(1).random((6, 6, 6))
    larger = resample(values, 1.0, 12, 1.0)
    np.testing.assert_allclose(larger[3:9, 3:9, 3:9], values, atol=1e-12)
    assert np.count_nonzero(abs(larger) > 1e-12) <= 7**3
    np.testing.assert_allclose(resample(values, 1.0, 4, 1.0), values[1:5, 1:5, 1:5], atol=1e-12)


def test_waves_too_short_for_the_new_voxels_are_left_out_and_not_folded_back() -> None:
    wave = np.cos(2 * np.pi * 9 * np.arange(24) / 24)  # 2.67 voxels long
    cube = wave[:, None, None] * np.ones((24, 24, 24))
    assert abs(resample(cube, 1.0, 12, 2.0)).max() < 1e-9


def test_wrong_arguments_are_told() -> None:
    with pytest.raises(OrienteerError, match="no grid"):
        resample(np.zeros((4, 4, 4)), 1.0, 4, 0.0)
    with pytest.raises(OrienteerError, match="three axes"):
        resample(np.zeros((4, 4)), 1.0, 4, 1.0)


@pytest.mark.gpu
def test_the_gpu_resamples_alike() -> None:
    cupy = import_cupy()
    assert cupy is not None
    found = resample(cupy.asarray(blobs(20, 2.0)), 2.0, 25, 1.3)
    np.testing.assert_allclose(found.get(), resample(blobs(20, 2.0), 2.0, 25, 1.3), atol=1e-10)
