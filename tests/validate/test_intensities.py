"""Two intensities on grids of their own, turned onto each other."""

import numpy as np
import pytest

from orienteer.compare.turning import rotate_volume
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import from_axis_angle
from orienteer.validate.intensities import IntensityAgreement, compare_intensities, on_grid_of
from orienteer.volume.volume import Volume


def smooth(n: int, voxel: float, edge: float = 1.0) -> Volume:
    axis = (np.arange(n) - n // 2) * voxel
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    values = 2 + np.cos(9 * x) * np.cos(7 * y) + np.cos(6 * z + 2 * x) + 0.3 * np.cos(11 * y - 4 * z)
    values[x**2 + y**2 + z**2 > edge**2] = np.nan
    return Volume(values, voxel, "reciprocal")


@pytest.mark.parametrize(("n", "voxel"), [(41, 0.05), (40, 0.06), (33, 0.07)])
def test_an_intensity_on_another_grid_is_the_same_intensity(n: int, voxel: float) -> None:
    reference = smooth(41, 0.05)
    found = on_grid_of(reference, smooth(n, voxel))
    assert found.voxel_size == reference.voxel_size
    inner = smooth(41, 0.05, 0.85).values
    known = np.isfinite(inner)
    assert np.nanmax(np.abs(found.values - inner)[known]) < 0.08
    assert np.isnan(found.values[0, 0, 0])


def test_a_turn_between_intensities_of_other_voxels_is_found() -> None:
    turn = from_axis_angle([1, 3, 2], 40)
    first = smooth(41, 0.05)
    first = first.with_values(rotate_volume(first.values, turn))
    found = compare_intensities(first, smooth(37, 0.056))
    assert angular_distance_deg(found.quaternion, turn) < 1
    assert np.nanmin(found.correlation[3:16]) > 0.9
    assert found.resolution_A == pytest.approx(1.0, rel=0.15)


def test_the_resolution_is_where_the_correlation_first_falls_below_a_half() -> None:
    q = 0.01 * np.arange(8)
    curve = np.array([np.nan, 0.1, 0.3, 0.9, 0.7, 0.3, 0.8, 0.9])
    assert IntensityAgreement(np.zeros(4), q, curve).resolution_A == pytest.approx(1 / 0.045)
    assert IntensityAgreement(np.zeros(4), q, 0 * curve).resolution_A is None
    ones = np.append(np.nan, np.ones(7))
    assert IntensityAgreement(np.zeros(4), q, ones).resolution_A == pytest.approx(1 / 0.07)
