"""Suspicion of hits: junk in one corner of all looks is found by those of odd brightness beside it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.hits.suspicion import Suspicion

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
        self.brightness = np.where(self.is_junk, 3.0, 1.0) * draw.standard_normal(N)

    def suspicion(self) -> Suspicion:
        return Suspicion.of(self.features, self.brightness)

    def judged_by(self, suspicion: Suspicion) -> NDArray[np.bool_]:
        return suspicion.trust(self.features, self.brightness)


def test_hidden_junk_is_found_and_most_hits_of_the_particle_are_kept() -> None:
    new = Hits(150, seed=2)
    trusted = new.judged_by(Hits(150).suspicion())
    assert trusted[new.is_junk].mean() < 0.1
    assert trusted[~new.is_junk].mean() > 0.9


def test_junk_is_found_among_hits_of_the_usual_brightness_alone() -> None:
    suspicion, new = Hits(150).suspicion(), Hits(150, seed=3)
    chance = suspicion.chance(new.features, np.zeros(N))
    assert np.median(chance[new.is_junk]) > 10 * np.median(chance[~new.is_junk])
    assert (chance > 0.3)[new.is_junk].mean() > 0.6


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_without_junk_hardly_any_hit_is_lost(seed: int) -> None:
    assert Hits(0, seed).judged_by(Hits(0).suspicion()).mean() > 0.96


class Views:
    """Hits of a particle that is brighter, or varies more in brightness, where the first feature is large.

    There is no junk.  One hit in nine has such a look.
    """

    def __init__(self, brighter: float, varies: float, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.features = draw.standard_normal((N, F))
        self.is_bright_side = self.features[:, 0] > 1.22
        y = draw.standard_normal(N)
        self.brightness = np.where(self.is_bright_side, brighter + varies * y, y)


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize(
    ("brighter", "varies", "kept"),
    [(1.0, 1.0, 0.95), (1.5, 1.0, 0.9), (-1.5, 1.0, 0.9), (2.0, 1.0, 0.75), (0.0, 1.8, 0.6)],
)
def test_sides_from_which_the_particle_has_another_brightness_are_not_lost(
    brighter: float, varies: float, kept: float, seed: int
) -> None:
    learned, new = Views(brighter, varies, seed + 100), Views(brighter, varies, seed)
    trusted = Suspicion.of(learned.features, learned.brightness).trust(new.features, new.brightness)
    assert trusted[new.is_bright_side].mean() > kept
    assert trusted.mean() > 0.95


def test_chances_are_those_that_come_true() -> None:
    new = Hits(150, seed=5)
    chance = Hits(150).suspicion().chance(new.features, new.brightness)
    assert chance.sum() == pytest.approx(150, rel=0.25)
    unsure = (chance > 0.1) & (chance < 0.9)
    assert abs(chance[unsure].mean() - new.is_junk[unsure].mean()) < 0.15


def test_what_is_far_too_bright_or_faint_is_junk_however_it_looks() -> None:
    suspicion = Hits(150).suspicion()
    chance = suspicion.chance(np.zeros((3, F)), np.array([-7.0, 0.0, 7.0]))
    assert chance[[0, 2]].min() > 0.9
    assert chance[1] < 0.05


def test_without_hits_nothing_is_suspicious_by_its_looks() -> None:
    suspicion = Suspicion.of(np.zeros((0, F)), np.zeros(0))
    looks = np.random.default_rng(3).standard_normal((3, F))
    assert suspicion.trust(looks, np.zeros(3)).all()
    assert not suspicion.trust(looks, np.full(3, 8.0)).any()


def test_few_hits_or_none_of_the_usual_brightness_are_no_error() -> None:
    draw = np.random.default_rng(3)
    few = Suspicion.of(draw.standard_normal((5, F)), np.zeros(5))
    assert few.trust(draw.standard_normal((3, F)), np.zeros(3)).all()
    assert few.chance(np.zeros((0, F)), np.zeros(0)).shape == (0,)
    odd = Suspicion.of(draw.standard_normal((5, F)), np.full(5, 9.0))
    assert not odd.trust(np.zeros((1, F)), np.full(1, 9.0)).any()
