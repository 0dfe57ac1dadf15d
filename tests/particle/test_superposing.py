"""Superposition and the pairing of like chains."""

import numpy as np

from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.particle.superposing import LikeChains, pair_chains, superposition


def test_a_turned_and_shifted_copy_is_laid_over_its_original(rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, 3)) * 20
    for quaternion in random_uniform(10, seed=3):
        rotation, shift = superposition(points @ to_matrix(quaternion).T + [5, 6, 7], points)
        np.testing.assert_allclose(
            (points @ to_matrix(quaternion).T + [5, 6, 7]) @ rotation.T + shift, points, atol=1e-9
        )


def test_a_mirror_image_is_not_laid_over_by_mirroring(rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, 3))
    rotation, _ = superposition(points * [1, 1, -1], points)
    assert np.linalg.det(rotation) > 0.999


def test_like_chains_are_paired_by_place_when_their_order_is_shuffled(rng: np.random.Generator) -> None:
    ring = np.stack(
        [(rng.normal(size=(20, 3)) * 8 + [50, 0, 3]) @ to_matrix(_about_z(k / 7)).T for k in range(7)]
    )
    order = rng.permutation(7)
    turned = ring[order] @ to_matrix(random_uniform(1, seed=5)[0]).T + rng.normal(size=(7, 20, 3))
    (pairing,) = pair_chains([LikeChains(ring, turned, [(i, i) for i in range(7)])])
    assert [order[j] for _, j in sorted(pairing)] == list(range(7))


def test_names_win_when_they_fit_as_well(rng: np.random.Generator) -> None:
    chain = rng.normal(size=(20, 3)) * 8 + [30, 0, 0]
    pair = np.stack([chain, chain * [-1, -1, 1]])  # a two-fold axis: both pairings fit exactly
    for named in ([(0, 0), (1, 1)], [(0, 1), (1, 0)]):
        (pairing,) = pair_chains([LikeChains(pair, pair, named)])
        assert sorted(pairing) == named


def _about_z(turns: float) -> list[float]:
    return [np.cos(np.pi * turns), 0, 0, np.sin(np.pi * turns)]
