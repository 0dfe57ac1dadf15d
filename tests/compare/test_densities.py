"""Rotation, shift and hand are found again, whatever the particle, the grid and the noise."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compare import densities
from orienteer.compare.densities import DensityAlignment, align_densities
from orienteer.compare.structure_density import density_of
from orienteer.compute.arrays import import_cupy, to_device
from orienteer.compute.progress import listening
from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import compose, from_axis_angle, random_uniform, rotate
from orienteer.particle.named_bodies import random_blobs
from orienteer.particle.structure import Structure, blobs
from orienteer.volume.volume import Volume

VOXEL_A = 5.6


def moved(
    body: Structure, seed: int, hand: int
) -> tuple[Structure, NDArray[np.float64], NDArray[np.float64]]:
    """The body, mirrored or not, turned and shifted at random; the turn; the shift."""
    turn, shift = random_uniform(1, seed)[0], np.random.default_rng(seed).uniform(-9, 9, 3)
    mirrored = replace(body, positions_A=hand * body.positions_A)
    return mirrored.rotated(turn).translated(shift), turn, shift


def density(
    body: Structure, n: int = 25, voxel_A: float = VOXEL_A, noise: float = 0.0, seed: int = 0
) -> Volume:
    volume = density_of(body, n, voxel_A)
    added = noise * volume.values.std() * np.random.default_rng(seed).normal(size=volume.shape)
    return volume.with_values(volume.values + added.astype(np.float32))


def ring(weight: float) -> Structure:
    """Two rings of five balls, twisted against each other; one ball differs."""
    angle = np.arange(5) * 2 * np.pi / 5
    places = [
        np.stack([r * np.cos(angle + t), r * np.sin(angle + t), np.full(5, z)], axis=1)
        for r, t, z in ((38, 0, 12), (28, 0.3, -14))
    ]
    return blobs(np.concatenate(places), [weight, *[1] * 9], 7.0)


BODIES = {
    "blobs": random_blobs(110, 12, seed=4),
    "nearly symmetric": ring(1.2),
    "nearly achiral": blobs(
        [[0, 0, 0], [30, 0, 0], [0, 38, 0], [-20, -20, 0], [10, 10, 16]], [1, 0.9, 1.1, 0.8, 0.3], 7
    ),
}


@pytest.mark.parametrize("hand", [1, -1])
@pytest.mark.parametrize("name", ["blobs", "nearly achiral"])
def test_a_rotation_that_is_nearly_known_need_not_be_searched_for(
    name: str, hand: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, turn, shift = moved(BODIES[name], 6, hand)
    pair = density(body, noise=0.3, seed=1), density(BODIES[name], noise=0.3, seed=2)
    near = np.asarray(compose(from_axis_angle([0, 1, 1], 3.0), turn))
    monkeypatch.delattr(densities, "candidate_rotations")
    found = align_densities(*pair, near=near)
    assert found.hand == hand
    assert angular_distance_deg(found.quaternion, turn) < 1.5
    np.testing.assert_allclose(found.shift_A, shift, atol=1.5)


@pytest.mark.parametrize(
    ("name", "hand", "n"),
    [
        ("blobs", 1, 24),
        ("blobs", -1, 25),
        ("nearly symmetric", -1, 24),
        ("nearly achiral", -1, 24),
    ],
)
def test_a_known_rotation_shift_and_hand_are_found(name: str, hand: int, n: int) -> None:
    body = BODIES[name]
    other, turn, shift = moved(body, 3 * n + hand, hand)
    found = align_densities(density(other, n), density(body, n))
    assert angular_distance_deg(found.quaternion, turn) < 0.1
    assert np.linalg.norm(found.shift_A - shift) < 0.1
    assert found.hand == hand
    assert found.correlation > 0.999
    assert found.other_hand_correlation < found.correlation
    assert found.fsc.correlation[1:10].min() > 0.98
    assert found.remarks == ()
    np.testing.assert_allclose(
        found.turned.values, found.reference.values, atol=0.02 * found.reference.values.max()
    )
    # A point of the moving density goes to hand * R r + shift.
    place = found.hand * rotate(found.quaternion, body.positions_A) + found.shift_A
    np.testing.assert_allclose(place, other.positions_A, atol=0.2)


def test_a_mirrored_truth_agrees_as_well_as_the_truth() -> None:
    """The hand is searched for: a phasing that ended in the other hand is as good."""
    body = BODIES["blobs"]
    truth = density(body)
    result = density(body, noise=0.7, seed=1)
    mirrored = result.with_values(result.values[::-1, ::-1, ::-1])  # the centre voxel of an odd box stays
    plain, flipped = (align_densities(truth, volume) for volume in (result, mirrored))
    assert (plain.hand, flipped.hand) == (1, -1)
    assert flipped.correlation == pytest.approx(plain.correlation, abs=1e-3)
    np.testing.assert_allclose(flipped.fsc.correlation[:10], plain.fsc.correlation[:10], atol=0.02)


def test_a_mirror_image_through_a_plane_is_a_hand_and_a_rotation() -> None:
    body = BODIES["blobs"]
    values = density(body).values
    found = align_densities(density(body), Volume(values[:, :, ::-1], VOXEL_A))
    assert found.hand == -1
    assert found.correlation > 0.995
    assert (
        angular_distance_deg(found.quaternion, [0, 0, 0, 1]) < 0.1
    )  # z -> -z is -1 times half a turn about z


def test_a_level_of_empty_space_changes_nothing() -> None:
    body = BODIES["blobs"]
    other, turn, shift = moved(body, 21, -1)
    lifted = density(body).values + 20 * density(body).values.max()
    found = align_densities(density(other), Volume(lifted, VOXEL_A))
    assert angular_distance_deg(found.quaternion, turn) < 0.1
    assert np.linalg.norm(found.shift_A - shift) < 0.1
    assert found.hand == -1
    assert found.correlation > 0.999


def test_noise_in_both_leaves_rotation_and_hand_right() -> None:
    body = BODIES["blobs"]
    other, turn, _ = moved(body, 5, -1)
    found = align_densities(density(other, noise=0.7, seed=1), density(body, noise=0.7, seed=2))
    assert found.hand == -1
    assert angular_distance_deg(found.quaternion, turn) < 2
    assert 0.5 < found.correlation < 0.9


def test_one_of_the_equal_rotations_of_a_symmetric_particle_is_taken() -> None:
    body = ring(1.0)
    other, turn, _ = moved(body, 8, 1)
    found = align_densities(density(other), density(body))
    assert found.correlation > 0.995
    assert found.hand == 1
    steps = [np.array([np.cos(a), 0, 0, np.sin(a)]) for a in np.arange(5) * np.pi / 5]
    from orienteer.orientation.quaternion import compose

    assert min(angular_distance_deg(found.quaternion, compose(turn, step)) for step in steps) < 0.1


def test_other_boxes_and_voxels_are_brought_onto_one_grid_and_it_is_said() -> None:
    body = BODIES["blobs"]
    other, turn, shift = moved(body, 13, -1)
    found = align_densities(density(other, 30, 4.8), density(body, 24, 6))
    assert angular_distance_deg(found.quaternion, turn) < 0.1
    assert np.linalg.norm(found.shift_A - shift) < 0.1
    assert found.hand == -1
    assert found.fsc.correlation[1:8].min() > 0.98
    assert "30 x 30 x 30 voxels of 4.8 A and 24 x 24 x 24 voxels of 6 A" in found.remarks[0]
    assert found.turned.voxel_size == (6, 6, 6)


def test_hands_can_be_held() -> None:
    body = BODIES["blobs"]
    mirrored = Volume(density(body).values[::-1, ::-1, ::-1], VOXEL_A)
    found = align_densities(density(body), mirrored, hands=(1,))
    assert found.hand == 1
    assert found.correlation < 0.99
    assert np.isnan(found.other_hand_correlation)
    with pytest.raises(OrienteerError, match="a hand is 1 or -1"):
        align_densities(density(body), mirrored, hands=(0,))


def test_two_boxes_of_noise_give_a_placement_and_no_agreement() -> None:
    draw = np.random.default_rng(3)
    found = align_densities(*(Volume(draw.normal(size=(20, 20, 20)), 1.0) for _ in range(2)))
    assert isinstance(found, DensityAlignment)
    assert found.correlation < 0.35
    assert abs(found.fsc.correlation[6:].mean()) < 0.15


@pytest.mark.gpu
def test_the_gpu_finds_the_same_placement() -> None:
    assert import_cupy() is not None
    body = BODIES["blobs"]
    other, turn, _ = moved(body, 17, -1)
    pair = [density(other), density(body)]
    there = align_densities(*(replace(v, values=to_device(v.values, "cuda")) for v in pair))
    assert angular_distance_deg(there.quaternion, turn) < 0.1
    assert there.hand == -1
    assert there.correlation == pytest.approx(align_densities(*pair).correlation, abs=1e-4)


def test_whoever_waits_hears_how_far_it_is() -> None:
    heard: list[tuple[str, int, int]] = []
    body = BODIES["blobs"]
    pair = density(body), density(moved(body, 3, -1)[0])
    with listening(lambda *step: heard.append(step)):
        align_densities(*pair)
    assert list(dict.fromkeys(what for what, _, _ in heard)) == [
        "Searching rotations", "Trying both hands", "Refining placements",
    ]  # fmt: skip
    ends = [(done, total) for what, done, total in heard if what == "Searching rotations"]
    assert ends[-1][0] == ends[-1][1] == len(ends) - 1
