"""Angular distance: a metric on orientations, blind to what cannot be seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from orienteer.compute.arrays import import_cupy, to_numpy
from orienteer.orientation.distance import angular_distance_deg, nearest_equivalent
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import compose, from_axis_angle, identity, random_uniform, to_matrix

quick = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)
groups = st.sampled_from(["C1", "C2", "C5", "D3", "D7", "T", "O", "I"])
HALF_TURN_ABOUT_BEAM = from_axis_angle([0, 0, 1], 180)


def brute_force_deg(a: np.ndarray, b: np.ndarray, group: str) -> float:
    """Angles of all turns from a S1 to b S2, from the traces of matrices; the smallest."""
    elements = to_matrix(PointGroup(group).quaternions)
    left, right = to_matrix(a) @ elements, to_matrix(b) @ elements
    trace = np.einsum("gij,hij->gh", left, right)
    return float(np.degrees(np.arccos(np.clip((trace - 1) / 2, -1, 1))).min())


@given(seeds, groups)
@quick
def test_distance_is_the_smallest_over_all_pairs_of_equivalents(seed: int, group: str) -> None:
    a, b = random_uniform(2, seed)
    assert_allclose(angular_distance_deg(a, b, group), brute_force_deg(a, b, group), atol=1e-5)


@given(seeds, groups)
@quick
def test_equivalent_orientations_are_at_distance_zero(seed: int, group: str) -> None:
    a = random_uniform(1, seed)[0]
    assert_allclose(angular_distance_deg(a, compose(a, PointGroup(group).quaternions), group), 0, atol=1e-12)


@given(seeds, groups)
@quick
def test_distance_is_a_metric_that_no_turn_of_the_laboratory_changes(seed: int, group: str) -> None:
    a, b, c, turn = random_uniform(4, seed)
    ab = angular_distance_deg(a, b, group)
    assert_allclose(angular_distance_deg(b, a, group), ab, atol=1e-9)
    assert_allclose(angular_distance_deg(-a, b, group), ab, atol=1e-9)
    assert_allclose(angular_distance_deg(compose(turn, a), compose(turn, b), group), ab, atol=1e-9)
    assert ab <= angular_distance_deg(a, c, group) + angular_distance_deg(c, b, group) + 1e-9


def test_symmetry_acts_on_the_particle_not_on_the_laboratory() -> None:
    a = random_uniform(1, seed=1)[0]
    element = PointGroup("I").quaternions[7]
    assert angular_distance_deg(a, compose(a, element), "I") < 1e-9
    assert angular_distance_deg(a, compose(element, a), "I") > 1


@given(seeds, groups)
@quick
def test_a_half_turn_about_the_beam_is_invisible_on_a_flat_ewald_sphere(seed: int, group: str) -> None:
    a, b = random_uniform(2, seed)
    turned = compose(HALF_TURN_ABOUT_BEAM, a)
    assert_allclose(angular_distance_deg(a, turned, group, flat_ewald=True), 0, atol=1e-12)
    assert_allclose(
        angular_distance_deg(turned, b, group, flat_ewald=True),
        angular_distance_deg(a, b, group, flat_ewald=True),
        atol=1e-9,
    )


def test_the_half_turn_is_seen_where_curvature_counts_and_has_the_right_side() -> None:
    """A flat pattern of I(q) = I(-q) at R^T q: Rz(180) R gives the same samples, R Rz(180) does not."""
    a = random_uniform(1, seed=3)[0]
    flat_q = np.array([[0.3, 0.1, 0.0], [-0.2, 0.5, 0.0]])
    blob = np.diag([1.0, 5.0, 30.0]) + 0.2

    def pattern(q: np.ndarray) -> np.ndarray:
        at = flat_q @ to_matrix(q)  # rows of R^T q
        return np.exp(-np.einsum("pi,ij,pj->p", at, blob, at))

    left, right = compose(HALF_TURN_ABOUT_BEAM, a), compose(a, HALF_TURN_ABOUT_BEAM)
    assert_allclose(pattern(left), pattern(a), rtol=1e-12)
    assert np.abs(pattern(right) - pattern(a)).max() > 1e-3
    assert angular_distance_deg(a, left) > 1
    assert angular_distance_deg(a, left, flat_ewald=True) < 1e-9
    assert angular_distance_deg(a, right, flat_ewald=True) > 1


def test_distances_are_those_of_scipy_and_small_ones_keep_their_digits() -> None:
    a, b = random_uniform(100, seed=4), random_uniform(100, seed=5)
    scipy_a, scipy_b = (Rotation.from_quat(q, scalar_first=True) for q in (a, b))
    assert_allclose(angular_distance_deg(a, b), np.degrees((scipy_a.inv() * scipy_b).magnitude()), atol=1e-9)
    nudged = compose(a, from_axis_angle([1, 2, 3], 1e-9))
    # A few roundings of float64 are 1e-13 degrees; the arccos of a trace would be wrong by 1e-6.
    assert_allclose(angular_distance_deg(a, nudged), 1e-9, atol=1e-13)


def test_nearest_equivalent_is_an_equivalent_and_nearest() -> None:
    group = PointGroup("O")
    q, reference = random_uniform(200, seed=6), random_uniform(1, seed=7)[0]
    moved = nearest_equivalent(q, group, reference)
    assert_allclose(angular_distance_deg(q, moved, group), 0, atol=1e-9)
    assert_allclose(
        angular_distance_deg(moved, reference), angular_distance_deg(q, reference, group), atol=1e-9
    )
    assert (
        angular_distance_deg(nearest_equivalent(q, group), identity()).max() < 62.8
    )  # widest corner of O's zone


@pytest.mark.gpu
def test_gpu_distances_agree() -> None:
    cupy = import_cupy()
    a, b = random_uniform(100, seed=8), random_uniform(100, seed=9)
    for group, flat in ((None, False), ("I", True)):
        result = angular_distance_deg(cupy.asarray(a), b, group, flat)
        assert isinstance(result, cupy.ndarray)
        assert_allclose(to_numpy(result), angular_distance_deg(a, b, group, flat), atol=1e-9)
