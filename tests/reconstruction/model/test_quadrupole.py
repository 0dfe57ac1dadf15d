"""The quadrupole tells bodies with the symmetry of a polyhedron from all others, wherever their axes lie."""

from typing import Any

import numpy as np
import pytest

from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import random_uniform, rotate
from orienteer.particle.bodies import Part, Spheroid, Sum, sphere
from orienteer.particle.named_bodies import random_blobs, two_domains, virus
from orienteer.particle.turned import Turned
from orienteer.reconstruction.model.quadrupole import quadrupole_share

DIAMETER_A, N = 300.0, 19


def share(particle: Any, diameter_A: float = DIAMETER_A, noise: float = 0.0) -> float:
    """Of an intensity over its radial mean, with three voxels to a speckle of a particle of this diameter."""
    axis = (np.arange(N) - N // 2) / (3 * diameter_A)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    transform = SampledTransform.from_particle(particle, 1.8 * N / 2 / (3 * diameter_A))
    values = transform.intensity(points.astype(np.float32), np.eye(3, dtype=np.float32)[None])
    values = np.asarray(values, dtype=np.float64).reshape(N, N, N)
    radius = np.linalg.norm(points, axis=1)
    order = np.argsort(radius, kind="stable")
    smooth = np.exp(np.polynomial.Polynomial.fit(radius[order], np.log(values.ravel()[order]), 8)(radius))
    relative = values / smooth.reshape(N, N, N)
    draw = np.random.default_rng(1)
    halves = [relative + noise * draw.normal(size=relative.shape) for _ in range(2)]
    return quadrupole_share(*halves, range(3, 6))


def turned(particle: Any) -> Any:
    return Turned(particle, tuple(random_uniform(1, 3)[0].tolist()))


def cage(group: str, place_A: tuple[float, float, float] = (40, 90, 60)) -> Any:
    """A ball at one place, and at all that the group makes equivalent."""
    places = rotate(PointGroup(group).quaternions, np.array(place_A))
    return Sum(tuple(Part(sphere(30, 0.4), 1.0, tuple(place.tolist())) for place in places))


@pytest.mark.parametrize("particle", [virus(DIAMETER_A), cage("T"), cage("O"), cage("I")])
@pytest.mark.parametrize("given", [0.8, 1.0, 1.5])
def test_polyhedra_have_none_whatever_diameter_is_given(particle: Any, given: float) -> None:
    assert abs(share(particle, given * DIAMETER_A)) < 0.03
    assert abs(share(turned(particle), given * DIAMETER_A)) < 0.03


@pytest.mark.parametrize(
    "particle",
    [
        *(random_blobs(DIAMETER_A, 15, seed) for seed in range(4)), two_domains(DIAMETER_A),
        cage("D7", (100, 60, 20)), Spheroid((120, 120, 150), 0.4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("given", [1.0, 1.5])
def test_other_bodies_are_made_of_it(particle: Any, given: float) -> None:
    assert share(particle, given * DIAMETER_A) > 0.3
    assert share(turned(particle), given * DIAMETER_A) > 0.3


def test_noise_that_halves_do_not_share_has_no_part_in_it() -> None:
    assert abs(share(virus(DIAMETER_A), noise=0.05)) < 0.1
    assert share(two_domains(DIAMETER_A), noise=0.3) > 0.3


def test_halves_that_share_nothing_are_not_nearly_round() -> None:
    first = np.random.default_rng(2).normal(size=(N, N, N))
    assert quadrupole_share(first, -first, range(3, 6)) == 1.0
