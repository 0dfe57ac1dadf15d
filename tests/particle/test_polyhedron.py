"""Polyhedra: the stable closed form against products of sincs, sums of points and of tetrahedra."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import to_matrix
from orienteer.particle.bodies import sphere
from orienteer.particle.polyhedron import Polyhedron, convex_polyhedron, icosahedron


def box(a: float, b: float, c: float) -> Polyhedron:
    return convex_polyhedron(
        [[x, y, z] for x in (-a / 2, a / 2) for y in (-b / 2, b / 2) for z in (-c / 2, c / 2)], 1.0
    )


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-6, 1e-3, 4e-3, 0.02, 0.2, 2.0])
def test_a_box_is_a_product_of_sincs_in_every_direction(scale: float, rng: np.random.Generator) -> None:
    q = rng.normal(size=(900, 3)) * scale
    q[:300, 0] = 0  # parallel to faces
    q[200:400, 1] = 0  # and to edges
    q[500:600, 2] *= 1e-10  # and nearly so
    expected = 8000 * np.sinc(10 * q[:, 0]) * np.sinc(20 * q[:, 1]) * np.sinc(40 * q[:, 2])
    np.testing.assert_allclose(box(10, 20, 40).amplitude(q), expected, atol=8000 * 5e-15)


@given(arrays(float, (8, 3), elements=st.floats(-50, 50)), arrays(float, 3, elements=st.floats(-0.2, 0.2)))
@settings(max_examples=60, deadline=None)
def test_a_polyhedron_cut_in_two_is_the_sum_of_its_halves(points: np.ndarray, q: np.ndarray) -> None:
    """Cutting by a plane through the middle makes other faces, other triangles and another inner point."""
    try:
        whole = convex_polyhedron(points, 1.0)
    except OrienteerError:
        assume(False)
    assume(whole.volume_A3 > 100)
    normal, level = np.array([0.6, 0.0, 0.8]), float(points.mean(axis=0) @ [0.6, 0.0, 0.8])
    height = points @ normal - level
    # Where segments between any two corners cross the plane lies a superset of the corners of the cut.
    cut = [points[i] + (points[j] - points[i]) * height[i] / (height[i] - height[j])
           for i in range(8) for j in range(i) if height[i] * height[j] < 0]  # fmt: skip
    assume(len(cut) >= 3)
    try:
        halves = [
            convex_polyhedron(np.concatenate([points[side], cut]), 1.0) for side in (height >= 0, height <= 0)
        ]
    except OrienteerError:
        assume(False)
    parts = sum(half.amplitude(q) for half in halves)
    assert whole.amplitude(q) == pytest.approx(parts, abs=1e-9 * whole.volume_A3)


def test_an_odd_polyhedron_has_the_transform_of_points_within_it(rng: np.random.Generator) -> None:
    corners = rng.normal(size=(12, 3)) * 20 + [30, -10, 5]
    body = convex_polyhedron(corners, density=0.5)
    low, high = corners.min(axis=0), corners.max(axis=0)
    n = 60
    step = (high - low) / n
    voxels = np.stack(
        np.meshgrid(*(low[i] + (np.arange(n) + 0.5) * step[i] for i in range(3)), indexing="ij"), -1
    )
    voxels = voxels.reshape(-1, 3)
    outward = np.cross(
        *(body.vertices_A[body.triangles[:, i]] - body.vertices_A[body.triangles[:, 0]] for i in (1, 2))
    )
    offsets = (outward * body.vertices_A[body.triangles[:, 0]]).sum(axis=1)
    inside = voxels[(voxels @ outward.T <= offsets).all(axis=1)]
    q = rng.normal(size=(30, 3)) * 0.01
    summed = 0.5 * step.prod() * np.exp(2j * np.pi * q @ inside.T).sum(axis=1)
    np.testing.assert_allclose(body.amplitude(q), summed, atol=0.003 * 0.5 * body.volume_A3)


def test_many_faces_approach_a_sphere(rng: np.random.Generator) -> None:
    directions = rng.normal(size=(3000, 3))
    body = convex_polyhedron(100 * directions / np.linalg.norm(directions, axis=1, keepdims=True), 1.0)
    q = rng.normal(size=(20, 3)) * 0.005
    expected = sphere(100, 1.0).amplitude(q)
    np.testing.assert_allclose(body.amplitude(q), expected, atol=0.01 * expected.real.max())


def test_the_icosahedron_has_its_volume_diameter_and_point_group(rng: np.random.Generator) -> None:
    body = icosahedron(300.0, density=1.0)
    edge = 150.0 / np.sin(2 * np.pi / 5)
    assert body.triangles.shape == (20, 3)
    assert body.volume_A3 == pytest.approx(5 * (3 + np.sqrt(5)) / 12 * edge**3)
    assert body.amplitude([0, 0, 0]) == pytest.approx(body.volume_A3)
    assert 2 * body.radius_A == pytest.approx(300)
    q = rng.normal(size=(20, 3)) * 0.02
    for quaternion in PointGroup("I").quaternions:
        np.testing.assert_allclose(body.amplitude(q @ to_matrix(quaternion)), body.amplitude(q), atol=1e-8)


def test_a_polyhedron_has_the_same_transform_wherever_it_stands_but_for_a_phase(
    rng: np.random.Generator,
) -> None:
    corners = rng.normal(size=(9, 3)) * 30
    q = rng.normal(size=(20, 3)) * 0.03
    there = convex_polyhedron(corners + np.array([1000, 0, -500]))
    expected = convex_polyhedron(corners).amplitude(q) * np.exp(2j * np.pi * q @ [1000, 0, -500])
    np.testing.assert_allclose(there.amplitude(q), expected, atol=1e-8 * there.volume_A3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: convex_polyhedron(np.zeros((3, 3))),
        lambda: convex_polyhedron([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]),
        lambda: convex_polyhedron([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, np.nan, 1]]),
        lambda: icosahedron(-1),
    ],
)
def test_impossible_polyhedra_are_refused(make) -> None:
    with pytest.raises(OrienteerError):
        make()
