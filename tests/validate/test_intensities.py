"""Two intensities on grids of their own, turned onto each other."""

import numpy as np
import pytest

from orienteer.compare.turning import rotate_volume
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import from_axis_angle
from orienteer.validate.intensities import IntensityAgreement, compare_intensities, worse_of
from orienteer.volume.volume import Volume


def smooth(n: int, voxel: float, edge: float = 1.0) -> Volume:
    axis = (np.arange(n) - n // 2) * voxel
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    values = 2 + np.cos(9 * x) * np.cos(7 * y) + np.cos(6 * z + 2 * x) + 0.3 * np.cos(11 * y - 4 * z)
    values[x**2 + y**2 + z**2 > edge**2] = np.nan
    return Volume(values, voxel, "reciprocal")


def agreement(curve: list[float]) -> IntensityAgreement:
    return IntensityAgreement(np.zeros(4), 0.01 * np.arange(len(curve)), np.array(curve))


def test_a_turn_between_intensities_of_other_voxels_is_found() -> None:
    turn = from_axis_angle([1, 3, 2], 40)
    first = smooth(41, 0.05)
    first = first.with_values(rotate_volume(first.values, turn))
    found = compare_intensities(first, smooth(37, 0.056))
    assert angular_distance_deg(found.quaternion, turn) < 1
    assert np.nanmin(found.correlation[3:16]) > 0.9
    assert found.resolution_A == pytest.approx(1.0, rel=0.15)


def test_the_resolution_is_where_the_correlation_first_falls_below_a_half() -> None:
    nan = np.nan
    assert agreement([nan, 0.1, 0.3, 0.9, 0.7, 0.3, 0.8, 0.9]).resolution_A == pytest.approx(1 / 0.045)
    assert agreement([nan, 0, 0, 0, 0, 0]).resolution_A is None
    assert agreement([nan, 1, 1, 1, 1, 1, nan]).resolution_A == pytest.approx(1 / 0.05)
    assert agreement([nan, 1, 1, 0.9, 0.3, 0.1]).falls_below(0.2) == pytest.approx(1 / 0.045)
    assert agreement([nan] * 4).resolution_A is None


def test_a_hole_in_the_centre_is_no_reason_to_see_no_agreement() -> None:
    nan = np.nan
    assert agreement([nan, nan, nan, 0.3, 0.4, 0.9, 0.9, 0.1]).resolution_A == pytest.approx(1 / 0.065)


def test_of_several_agreements_the_one_that_reaches_least_counts() -> None:
    far, near, none = agreement([1.0] * 9), agreement([1, 1, 1, 1, 0.6, 0.1]), agreement([0.0] * 9)
    assert worse_of([far, near]) is near
    assert worse_of([near, none, far]) is none


def test_shells_of_few_speckles_must_agree_by_more_than_their_scatter() -> None:
    # At 0.01 1/A, one speckle of a particle of 100 A: 6 of them, which scatter by 0.4.
    some = agreement([np.nan, 0.7, 0.35, 0.3, 0.3, 0.3, 0.1])
    assert some.agrees_to_A(100.0) is None
    assert some.agrees_to_A(1000.0) == pytest.approx(1 / 0.058, rel=0.02)
    better = agreement([np.nan, 0.9, 0.9, 0.9, 0.9, 0.5, 0.1])
    assert better.agrees_to_A(100.0) == pytest.approx(1 / 0.058, rel=0.03)
    # Equivalent speckles count once: of 60 equivalents none of these shells says anything.
    assert better.agrees_to_A(100.0, order=60) is None


def test_shells_that_reach_beyond_the_outermost_pixel_are_left_out() -> None:
    found = compare_intensities(smooth(21, 0.1), smooth(21, 0.1), edge_inv_A=0.71)
    assert np.isfinite(found.correlation[6])
    assert np.isnan(found.correlation[7:]).all()
    assert found.resolution_A == pytest.approx(1 / 0.6)
