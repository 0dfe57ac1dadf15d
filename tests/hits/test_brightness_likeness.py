"""Brightness of hits: both sides have a spread of their own, and few bright ones hardly change it."""

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.brightness_likeness import BrightnessLikeness
from orienteer.hits.evidence import Evidence


def hits_of(brightness: NDArray[np.float64]) -> Evidence:
    n = len(brightness)
    rings, ones = np.ones((n, 4), np.float32), np.ones(n, np.float32)
    return Evidence(rings, rings, np.ones((n, 3), np.float32), brightness.astype(np.float32), ones, ones)


def test_the_spread_of_normal_logarithms_is_learned() -> None:
    draw = np.random.default_rng(1)
    likeness = BrightnessLikeness.of(hits_of(np.exp(6 + 0.3 * draw.standard_normal(20_000))))
    np.testing.assert_allclose([likeness.middle, likeness.below, likeness.above], [6, 0.3, 0.3], atol=0.01)
    np.testing.assert_allclose(likeness.distance(hits_of(np.exp([6.6, 5.1]))), [4, 9], rtol=0.1)


def test_each_side_has_its_own_spread() -> None:
    draw = np.random.default_rng(2)
    z = draw.standard_normal(20_000)
    likeness = BrightnessLikeness.of(hits_of(np.exp(np.where(z < 0, 0.8 * z, 0.2 * z) + 5)))
    np.testing.assert_allclose([likeness.below, likeness.above], [0.8, 0.2], rtol=0.05)


def test_one_hit_in_ten_of_any_brightness_changes_little() -> None:
    draw = np.random.default_rng(3)
    logarithm = 6 + 0.3 * draw.standard_normal(2000)
    logarithm[::10] = draw.uniform(3, 8, 200)
    likeness = BrightnessLikeness.of(hits_of(np.exp(logarithm)))
    np.testing.assert_allclose([likeness.middle, likeness.below, likeness.above], [6, 0.3, 0.3], atol=0.06)


def test_hits_that_are_all_alike_still_have_a_spread() -> None:
    likeness = BrightnessLikeness.of(hits_of(np.full(50, 400.0)))
    assert np.isfinite(likeness.distance(hits_of(np.array([0.0, 300.0, 500.0])))).all()
