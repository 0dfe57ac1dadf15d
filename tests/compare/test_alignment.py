"""Alignment finds the rotation between two intensities, whatever the particle, the noise and the box."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare.alignment import align_intensities, look_alike_rotations
from orienteer.compare.rotation_search import RotationSearch, even_shells, speckle_radius
from orienteer.compare.shells import radial_mean, radial_variance, shell_index
from orienteer.compute.arrays import import_cupy
from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import compose, from_axis_angle, random_uniform
from orienteer.particle.bodies import Part, Spheroid, Sum
from orienteer.particle.named_bodies import random_blobs, virus

Intensity = Callable[..., NDArray[np.float64]]


@pytest.mark.parametrize(("n", "seed"), [(32, 1), (33, 2), (33, 3)])
def test_the_turn_of_an_object_without_symmetry_is_found(
    intensity_on_cube: Intensity, n: int, seed: int
) -> None:
    body, turn = random_blobs(200, 8, seed=seed), random_uniform(1, seed)[0]
    reference = intensity_on_cube(body, n, 0.03, turn)
    found = align_intensities(reference, intensity_on_cube(body, n, 0.03))
    assert angular_distance_deg(found.quaternion, turn) < 0.3
    assert found.correlation > 0.99
    assert found.shells.mean(np.arange(1, (n - 1) // 2 + 1)) == found.correlation
    assert found.turned.shape == reference.shape


def test_a_turn_that_is_nearly_known_is_found_with_less_than_a_third_of_the_work(
    intensity_on_cube: Intensity, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, turn = random_blobs(200, 8, seed=2), random_uniform(1, 2)[0]
    reference, moving = intensity_on_cube(body, 33, 0.03, turn), intensity_on_cube(body, 33, 0.03)
    looked_at: list[int] = []
    scores = RotationSearch.scores

    def counted(search, quaternions, points, order, weights=None):  # type: ignore[no-untyped-def]
        looked_at.append(len(quaternions) * len(points))
        return scores(search, quaternions, points, order, weights)

    monkeypatch.setattr(RotationSearch, "scores", counted)
    searched = align_intensities(reference, moving)
    in_all = sum(looked_at)
    looked_at.clear()
    near = compose(from_axis_angle([1, 2, 2], 2.0), turn)
    found = align_intensities(reference, moving, near=np.asarray(near))
    assert angular_distance_deg(found.quaternion, searched.quaternion) < 0.1
    assert angular_distance_deg(found.quaternion, turn) < 0.3
    assert sum(looked_at) < in_all / 3


def test_a_virus_is_found_up_to_its_symmetry(intensity_on_cube: Intensity) -> None:
    body, turn = virus(300), random_uniform(1, 5)[0]
    found = align_intensities(intensity_on_cube(body, 33, 0.025, turn), intensity_on_cube(body, 33, 0.025))
    assert angular_distance_deg(found.quaternion, turn, "I") < 0.5
    assert found.shells.mean(np.arange(6, 17)) > 0.97  # further in it is round to a part in a hundred


def test_the_other_hand_has_the_same_intensity(intensity_on_cube: Intensity) -> None:
    """A mirror image needs no search of its own: through the origin it has the same intensity."""
    parts = [
        ((30.0, 20, 10), (40.0, 0, 10)),
        ((15.0, 25, 20), (-30.0, 30, 0)),
        ((20.0, 12, 9), (0.0, -40, -25)),
    ]
    body = Sum(tuple(Part(Spheroid(axes), 1.0, offset) for axes, offset in parts))
    hand = Sum(tuple(Part(Spheroid(axes), 1.0, (-x, y, z)) for axes, (x, y, z) in parts))
    found = align_intensities(intensity_on_cube(body, 27, 0.02), intensity_on_cube(hand, 27, 0.02))
    assert found.correlation > 0.99


def test_noise_as_strong_as_the_speckles_and_holes_do_not_hide_the_turn(intensity_on_cube: Intensity) -> None:
    draw = np.random.default_rng(4)
    body, turn = random_blobs(200, 8, seed=4), random_uniform(1, 4)[0]
    reference, moving = intensity_on_cube(body, 32, 0.03, turn), intensity_on_cube(body, 32, 0.03)
    spread = np.sqrt(np.append(radial_variance(moving), 0))[shell_index(32)]
    moving = (moving + spread * draw.normal(size=moving.shape)).astype(np.float32)
    moving[draw.random(moving.shape) < 0.05] = np.nan
    reference[14:18, 14:18, 14:18] = np.nan
    found = align_intensities(reference, moving)
    assert angular_distance_deg(found.quaternion, turn) < 1
    assert 0.5 < found.correlation < 0.9


def test_two_different_objects_do_not_agree(intensity_on_cube: Intensity) -> None:
    one, other = (intensity_on_cube(random_blobs(200, 12, seed=s), 33, 0.04) for s in (1, 2))
    assert align_intensities(one, other, first_shell=4).correlation < 0.6


def test_outer_shells_can_be_left_out(intensity_on_cube: Intensity) -> None:
    draw, n = np.random.default_rng(4), 32
    body, turn = random_blobs(200, 8, seed=5), random_uniform(1, 6)[0]
    reference, moving = intensity_on_cube(body, n, 0.03, turn), intensity_on_cube(body, n, 0.03)
    noise = np.append(radial_mean(moving), 0)[shell_index(n)] * draw.exponential(size=moving.shape)
    moving = np.where((shell_index(n) > 10) | (shell_index(n) < 2), noise, moving)
    found = align_intensities(reference, moving, first_shell=2, last_shell=10)
    assert angular_distance_deg(found.quaternion, turn) < 1
    assert found.shells.mean(np.arange(4, 10)) > 0.98  # noise next to a shell is interpolated into it
    assert found.shells.mean(np.arange(11, 16)) < 0.2


def test_even_shells_have_mean_zero_and_variance_one() -> None:
    values = np.random.default_rng(1).random((13, 13, 13)) / (1 + np.maximum(shell_index(13), 0)) ** 3
    values[4, 5, 6] = np.nan
    even = even_shells(values)
    np.testing.assert_allclose(radial_mean(even)[1:], 0, atol=1e-12)
    np.testing.assert_allclose(radial_variance(even)[1:], 1, atol=0.1)
    assert even[4, 5, 6] == 0
    assert not even[shell_index(13) < 0].any()


@pytest.mark.parametrize("oversampling", [1, 2])
def test_speckles_are_as_wide_as_the_particle_is_small(
    intensity_on_cube: Intensity, oversampling: int
) -> None:
    body = random_blobs(400 / oversampling, 20, seed=1)
    width = speckle_radius(even_shells(intensity_on_cube(body, 33, 0.016)))
    assert width == pytest.approx(2 * oversampling, abs=1)
    noise = np.random.default_rng(1).normal(size=(33, 33, 33))
    assert speckle_radius(even_shells(noise)) >= 1


def test_wrong_arguments_are_told() -> None:
    with pytest.raises(OrienteerError, match="cannot be aligned"):
        align_intensities(np.zeros((4, 4, 4)), np.zeros((5, 5, 5)))
    with pytest.raises(OrienteerError, match="has shells 0 to 3"):
        align_intensities(np.zeros((7, 7, 7)), np.zeros((7, 7, 7)), last_shell=4)


def test_empty_volumes_give_no_agreement_and_no_error() -> None:
    found = align_intensities(np.zeros((9, 9, 9)), np.zeros((9, 9, 9)))
    assert found.correlation == 0
    assert np.linalg.norm(found.quaternion) == pytest.approx(1)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_virus_looks_alike_at_its_sixty_rotations(intensity_on_cube: Intensity, noise: float) -> None:
    values = intensity_on_cube(virus(300), 33, 0.025)
    scale = np.sqrt(radial_variance(values))[np.clip(shell_index(33), 0, None)]
    values = values + noise * scale * np.random.default_rng(1).normal(size=values.shape)
    alike = look_alike_rotations(values, 0.6 / (1 + noise**2), first_shell=5, last_shell=14)
    # The group leaves every rotation at none: all of them are of it, and it has no other.
    assert len(alike) == 60
    assert angular_distance_deg(alike, np.tile([1.0, 0, 0, 0], (60, 1)), "I").max() < 5


def test_blobs_look_alike_only_where_they_are(intensity_on_cube: Intensity) -> None:
    values = intensity_on_cube(random_blobs(300, 30, seed=4), 33, 0.02)
    alike = look_alike_rotations(values, 0.6, first_shell=3, last_shell=14)
    np.testing.assert_array_equal(alike, [[1, 0, 0, 0]])


@pytest.mark.gpu
def test_the_gpu_finds_the_same_turn(intensity_on_cube: Intensity) -> None:
    cupy = import_cupy()
    assert cupy is not None
    body, turn = random_blobs(200, 8, seed=1), random_uniform(1, 1)[0]
    reference, moving = intensity_on_cube(body, 32, 0.03, turn), intensity_on_cube(body, 32, 0.03)
    found = align_intensities(cupy.asarray(reference), cupy.asarray(moving))
    assert isinstance(found.turned, cupy.ndarray)
    assert angular_distance_deg(found.quaternion, align_intensities(reference, moving).quaternion) < 0.1
