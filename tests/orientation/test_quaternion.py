"""Quaternions against scipy's rotations, and the algebra they must obey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from orienteer.compute.arrays import import_cupy, to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation import quaternion as qn

quick = settings(max_examples=40, deadline=None)
component = st.floats(-1, 1, allow_subnormal=False)
rotations = (
    st.tuples(component, component, component, component)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
    .map(lambda q: np.asarray(q) / np.linalg.norm(q))
)


def scipy_rotation(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.asarray(q), scalar_first=True)


def assert_same_rotation(a: np.ndarray, b: np.ndarray, atol: float = 1e-12) -> None:
    """Equal up to the sign of the quaternion."""
    dot = np.sum(np.asarray(a) * np.asarray(b), axis=-1, keepdims=True)
    assert_allclose(np.asarray(a) * np.sign(dot), b, atol=atol)


def test_matrices_are_those_of_scipy() -> None:
    q = qn.random_uniform(200, seed=1)
    assert_allclose(qn.to_matrix(q), scipy_rotation(q).as_matrix(), atol=1e-14)


@given(rotations, rotations)
@quick
def test_compose_applies_the_second_argument_first(a: np.ndarray, b: np.ndarray) -> None:
    assert_allclose(qn.to_matrix(qn.compose(a, b)), qn.to_matrix(a) @ qn.to_matrix(b), atol=1e-12)


@given(rotations, rotations, rotations)
@quick
def test_rotations_form_a_group(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    assert_allclose(qn.compose(qn.compose(a, b), c), qn.compose(a, qn.compose(b, c)), atol=1e-12)
    assert_allclose(qn.compose(a, qn.identity()), a, atol=1e-12)
    assert_allclose(qn.compose(a, qn.inverse(a)), qn.identity(), atol=1e-12)


@given(rotations)
@quick
def test_both_signs_are_one_rotation(q: np.ndarray) -> None:
    assert_allclose(qn.to_matrix(q), qn.to_matrix(-q), atol=1e-14)
    assert np.array_equal(qn.canonical(q), qn.canonical(-q))
    first = qn.canonical(q)[np.abs(qn.canonical(q)) > 1e-12][0]
    assert first > 0


def test_canonical_is_not_decided_by_rounding() -> None:
    assert_allclose(qn.canonical([-1e-17, -1.0, 0.0, 0.0]), [0, 1, 0, 0], atol=1e-15)


@given(rotations)
@quick
def test_matrix_round_trip_is_exact_for_every_trace(q: np.ndarray) -> None:
    assert_same_rotation(qn.from_matrix(qn.to_matrix(q)), q)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, -1, 1), (1e-9, 0, 1)])
@pytest.mark.parametrize("angle_deg", [0, 1e-6, 90, 120, 179.999999, 180])
def test_matrix_round_trip_at_special_angles(axis: tuple[float, ...], angle_deg: float) -> None:
    q = qn.from_axis_angle(axis, angle_deg)
    assert_same_rotation(qn.from_matrix(qn.to_matrix(q)), q)


def test_axis_angle_is_that_of_scipy_and_round_trips() -> None:
    generator = np.random.default_rng(2)
    axis = generator.normal(size=(50, 3))
    angle_deg = generator.uniform(0, 180, 50)
    q = qn.from_axis_angle(axis, angle_deg)
    unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    assert_same_rotation(
        q, Rotation.from_rotvec(unit * np.radians(angle_deg)[:, None]).as_quat(scalar_first=True)
    )
    axis_again, angle_again_deg = qn.to_axis_angle(-q)
    assert_allclose(axis_again, unit, atol=1e-12)
    assert_allclose(angle_again_deg, angle_deg, atol=1e-11)


def test_no_turn_has_an_axis_and_no_angle() -> None:
    axis, angle_deg = qn.to_axis_angle(qn.identity())
    assert_allclose(axis, [0, 0, 1])
    assert angle_deg == 0


def test_tiny_angles_keep_their_digits() -> None:
    _, angle_deg = qn.to_axis_angle(qn.from_axis_angle([1, 2, 3], 1e-10))
    assert_allclose(angle_deg, 1e-10, rtol=1e-12)


@given(rotations, st.tuples(component, component, component))
@quick
def test_rotate_is_the_matrix_product_and_keeps_lengths(q: np.ndarray, r: tuple[float, float, float]) -> None:
    turned = qn.rotate(q, r)
    assert_allclose(turned, qn.to_matrix(q) @ np.asarray(r), atol=1e-14)
    assert_allclose(np.linalg.norm(turned), np.linalg.norm(r), atol=1e-12)


def test_shapes_broadcast() -> None:
    q = qn.random_uniform(6, seed=3).reshape(2, 3, 4)
    assert qn.compose(q, q[0]).shape == (2, 3, 4)
    assert qn.rotate(q[:, :, None], np.ones((5, 3))).shape == (2, 3, 5, 3)
    assert qn.from_axis_angle([0, 0, 1], np.zeros((2, 5))).shape == (2, 5, 4)
    assert qn.mean(q).shape == (2, 4)


def test_float32_is_computed_in_float64() -> None:
    assert qn.to_matrix(qn.random_uniform(3, seed=1).astype(np.float32)).dtype == np.float64


def test_mean_of_scattered_orientations_is_their_centre() -> None:
    centre = qn.random_uniform(1, seed=4)[0]
    generator = np.random.default_rng(5)
    scatter = qn.from_axis_angle(generator.normal(size=(4000, 3)), generator.uniform(0, 20, 4000))
    samples = qn.compose(centre, scatter) * generator.choice([-1, 1], (4000, 1))
    mean = qn.mean(samples)
    assert_same_rotation(mean, scipy_rotation(samples).mean().as_quat(scalar_first=True), atol=1e-9)
    assert qn.to_axis_angle(qn.compose(qn.inverse(centre), mean))[1] < 0.5


def test_weights_pull_the_mean() -> None:
    a, b = qn.identity(), qn.from_axis_angle([0, 0, 1], 40)
    assert_allclose(qn.to_axis_angle(qn.mean([a, b]))[1], 20, atol=1e-9)
    assert_allclose(qn.to_axis_angle(qn.mean([a, b], [0, 2]))[1], 40, atol=1e-9)


def test_random_rotations_are_uniform_and_repeatable() -> None:
    q = qn.random_uniform(20_000, seed=6)
    assert np.array_equal(q[:100], qn.random_uniform(100, seed=6))
    assert not np.array_equal(q[:100], qn.random_uniform(100, seed=7))
    # Moments of Haar measure: <R> = 0 and <R_ij R_kl> = d_ik d_jl / 3; six standard errors.
    matrices = qn.to_matrix(q).reshape(-1, 9)
    assert_allclose(matrices.mean(axis=0), 0, atol=6 / np.sqrt(3 * len(q)))
    assert_allclose(matrices.T @ matrices / len(q), np.eye(9) / 3, atol=6 / np.sqrt(3 * len(q)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: qn.normalise([0, 0, 0, 0]),
        lambda: qn.normalise([np.nan, 0, 0, 1]),
        lambda: qn.compose([1, 0, 0], [1, 0, 0, 0]),
        lambda: qn.rotate([1, 0, 0, 0], [1, 0]),
        lambda: qn.from_axis_angle([0, 0, 0], 10),
        lambda: qn.from_matrix(np.eye(4)),
        lambda: qn.from_matrix(np.diag([1.0, 1.0, -1.0])),
        lambda: qn.from_matrix(2 * np.eye(3)),
        lambda: qn.from_matrix(np.full((3, 3), np.nan)),
        lambda: qn.mean(np.empty((0, 4))),
        lambda: qn.mean(np.eye(4), [0, 0, 0, 0]),
    ],
)
def test_what_is_no_rotation_is_refused_in_words(call) -> None:
    with pytest.raises(OrienteerError):
        call()


@pytest.mark.gpu
def test_gpu_arrays_stay_on_the_gpu_and_agree() -> None:
    cupy = import_cupy()
    a, b = qn.random_uniform(50, seed=8), qn.random_uniform(50, seed=9)
    on_gpu = cupy.asarray(a)
    for function in (
        qn.canonical,
        qn.normalise,
        qn.inverse,
        qn.to_matrix,
        qn.mean,
        lambda q: qn.compose(q, b),
    ):
        result = function(on_gpu)
        assert isinstance(result, cupy.ndarray)
        assert_allclose(to_numpy(result), function(a), atol=1e-12)
    assert_allclose(to_numpy(qn.from_matrix(qn.to_matrix(on_gpu))), a, atol=1e-12)
    assert_allclose(to_numpy(qn.rotate(on_gpu, b[:, :3])), qn.rotate(a, b[:, :3]), atol=1e-12)
    for on_device, on_host in zip(qn.to_axis_angle(on_gpu), qn.to_axis_angle(a), strict=True):
        assert_allclose(to_numpy(on_device), on_host, atol=1e-10)
    axis, angle_deg = qn.to_axis_angle(on_gpu)
    assert_allclose(to_numpy(qn.from_axis_angle(axis, angle_deg)), a, atol=1e-12)
