"""The built-in bodies that have no symmetry have none, and keep to their size."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import from_axis_angle, random_uniform, rotate, to_matrix
from orienteer.particle.base import Particle, fill_grid
from orienteer.particle.bodies import PROTEIN_DENSITY, Part, Spheroid, Sum
from orienteer.particle.named_bodies import random_blobs, two_domains
from orienteer.particle.turned import Turned


def density_of_two_domains(points: NDArray[np.float64], body: Sum) -> NDArray[np.int64]:
    """How many of its ellipsoids each point lies in, from the geometry alone."""
    inside = np.zeros(len(points), int)
    for part in body.parts:
        turned = part.particle
        assert isinstance(turned, Turned)
        assert isinstance(turned.body, Spheroid)
        own = (points - part.offset_A) @ to_matrix(turned.quaternion)
        inside += (np.square(own / turned.body.semi_axes_A).sum(axis=1) < 1).astype(int)
    return inside


def test_the_domains_are_joined_and_fill_the_diameter(rng: np.random.Generator) -> None:
    body = two_domains(100.0)
    points = rng.uniform(-60, 60, (400_000, 3))
    inside = density_of_two_domains(points, body)
    assert 0 < (inside == 2).sum() < 0.05 * (inside > 0).sum()  # a neck, and hardly more
    reach = np.linalg.norm(points[inside > 0], axis=1).max()
    assert 45 < reach < 50
    assert body.radius_A <= 50
    electrons = PROTEIN_DENSITY * inside.sum() * 120**3 / len(points)
    assert body.amplitude([0, 0, 0]).real == pytest.approx(electrons, rel=0.02)


@pytest.mark.parametrize(
    "body", [two_domains(100.0), random_blobs(100.0, 30, seed=1)], ids=["domains", "blobs"]
)
def test_no_turn_brings_the_intensity_onto_itself(body: Particle, rng: np.random.Generator) -> None:
    q = rng.normal(size=(2000, 3))
    q *= 0.03 / np.linalg.norm(q, axis=1, keepdims=True)
    speckles = np.abs(body.amplitude(q)) ** 2
    axes = rotate(random_uniform(600, 1), [0.0, 0.0, 1.0])
    for order in (2, 3, 5):
        for turn in to_matrix(from_axis_angle(axes, 360 / order)):
            assert np.corrcoef(speckles, np.abs(body.amplitude(q @ turn)) ** 2)[0, 1] < 0.85


def test_the_transform_on_a_grid_is_that_of_the_points() -> None:
    body = two_domains(100.0)
    axis = (np.arange(8) - 4) * 0.004
    np.testing.assert_allclose(body.amplitude_on_grid(axis), fill_grid(axis, body.amplitude), rtol=1e-10)


def test_a_turned_body_is_seen_at_the_unturned_place(rng: np.random.Generator) -> None:
    quaternion = tuple(random_uniform(1, 3)[0].tolist())
    body = Sum((Part(Spheroid((10.0, 20.0, 30.0))),))
    q = rng.normal(size=(20, 3)) * 0.01
    turned = Turned(Spheroid((10.0, 20.0, 30.0)), quaternion)
    np.testing.assert_allclose(turned.amplitude(rotate(quaternion, q)), body.amplitude(q), rtol=1e-10)
    assert turned.radius_A == 30


@pytest.mark.parametrize("quaternion", [(1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)])
def test_a_body_is_turned_by_a_rotation_only(quaternion: tuple[float, ...]) -> None:
    with pytest.raises(OrienteerError, match="quaternion"):
        Turned(Spheroid((10.0, 20.0, 30.0)), quaternion)  # type: ignore[arg-type]
