"""Particles of one shot: none overlaps another, and those that touch do touch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.simulation.placement import place_in_chain, widest_separation_A


def pair_distances(position: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(position[:, :, None] - position[:, None], axis=-1))


@given(seed=st.integers(0, 2**31), M=st.integers(2, 8), step=st.sampled_from([0.0, 30.0, 1e4]))
@settings(max_examples=25, deadline=None)
def test_no_two_particles_overlap(seed: int, M: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((200, M, 3))
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    radius = rng.uniform(5, 80, (200, M))
    slack = rng.uniform(1e-3, 0.1, (200, M))
    distance = pair_distances(place_in_chain(direction, radius, np.full((200, M), step), slack))
    touching = radius[:, :, None] + radius[:, None]
    others = ~np.eye(M, dtype=bool)
    assert (distance > touching)[:, others].all()
    if step == 0:
        nearest = np.where(others, distance / touching, np.inf).min(2)
        assert nearest.max() <= 1.1


def test_the_widest_separation_is_that_of_the_two_outermost() -> None:
    position = np.zeros((2, 3, 3))
    position[0, 1, 0], position[0, 2, 0] = 30.0, -50.0
    assert widest_separation_A(position) == pytest.approx([80.0, 0.0])
