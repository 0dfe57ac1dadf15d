"""Neighbours of hits: junk in one corner of all looks is found by those of odd brightness beside it."""

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.neighbours import _FEWEST, _MORE, _ONE_IN, Neighbours

N, F = 1500, 6


class Hits:
    """Hits of a particle with features of any kind, and some junk that looks like a part of them.

    Two in five pieces of junk have an odd brightness, and one in a hundred hits of the particle.
    """

    def __init__(self, n_junk: int, seed: int = 1) -> None:
        draw = np.random.default_rng(seed)
        particle = draw.standard_normal((N - n_junk, F))
        junk = 0.4 * draw.standard_normal((n_junk, F)) + np.array([1.5, 1.5, 1.5, 0, 0, 0])
        self.features = np.concatenate([particle, junk]) * np.array([1e3, 1, 1, 1, 1, 1e-3])
        self.is_junk = np.arange(N) >= N - n_junk
        self.is_as_bright = draw.random(N) > np.where(self.is_junk, 0.4, 0.01)
        self.looks_alike = np.ones(N, dtype=bool)

    def neighbours(self) -> Neighbours:
        return Neighbours.of(self.features, self.looks_alike, self.is_as_bright)


def slow_share(neighbours: Neighbours, features: NDArray[np.float64]) -> NDArray[np.float64]:
    places = np.clip((features - neighbours.middle) / neighbours.spread, -6, 6)
    k = max(len(neighbours.places) // _ONE_IN, _FEWEST)
    shares = []
    for place in places:
        nearest = np.argsort(((neighbours.places - place) ** 2).sum(axis=1), kind="stable")[:k]
        shares.append(neighbours.suspicion[nearest].sum() / (k + _MORE))
    return np.array(shares)


def test_the_share_is_that_of_a_slow_search() -> None:
    neighbours, new = Hits(150).neighbours(), Hits(150, seed=2).features[::10]
    fast, slow = neighbours.share(new), slow_share(neighbours, new)
    # Neighbours that are as far as each other but for rounding may be changed for one another.
    assert (np.abs(fast - slow) < 1e-6).mean() > 0.98
    assert np.abs(fast - slow).max() < 0.02


def test_hidden_junk_is_found_and_most_hits_of_the_particle_are_kept() -> None:
    neighbours, new = Hits(150).neighbours(), Hits(150, seed=2)
    trusted = neighbours.trust(new.features)
    assert trusted[new.is_junk].mean() < 0.1
    assert trusted[~new.is_junk].mean() > 0.9


def test_without_junk_hardly_any_hit_is_lost() -> None:
    neighbours, new = Hits(0).neighbours(), Hits(0, seed=2)
    assert neighbours.trust(new.features).mean() > 0.96


def test_hits_that_look_otherwise_count_less_than_those_of_odd_brightness() -> None:
    hits = Hits(150)
    odd_looks = Neighbours.of(hits.features, hits.is_as_bright, np.ones(N, dtype=bool))
    odd_light = hits.neighbours()
    junk = hits.features[hits.is_junk]
    assert 0 < odd_looks.share(junk).mean() < 0.5 * odd_light.share(junk).mean()


def test_fewer_hits_than_neighbours_are_no_error() -> None:
    draw = np.random.default_rng(3)
    few = Neighbours.of(draw.standard_normal((5, F)), np.ones(5, dtype=bool), np.ones(5, dtype=bool))
    assert few.trust(draw.standard_normal((3, F))).all()
    assert few.share(np.zeros((0, F))).shape == (0,)
