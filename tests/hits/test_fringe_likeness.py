"""Strengths of fringes that grow with light, and stronger ones."""

import numpy as np
from scipy.special import chdtri

from orienteer.hits.evidence import Evidence
from orienteer.hits.fringe_likeness import FringeLikeness

NOISE, SLOPE = np.array([3.0, 4.0, 5.0]), np.array([0.03, 0.01, 0.0])


def hits(n: int, photons: float, seed: int, factor: float = 1.0) -> Evidence:
    draw = np.random.default_rng(seed)
    brightness = photons * draw.uniform(0.5, 2, n)
    rings = np.stack([brightness, brightness / 2], axis=1).astype(np.float32)
    background = np.full((n, 2), 100, np.float32)
    evidence = Evidence(rings + background, background, *np.ones((4, n), np.float32))
    typical = NOISE + SLOPE * evidence.visibility[:, None]
    fringes = (typical + 1) * np.exp(0.3 * draw.standard_normal((n, 3))) * [1, 1, factor] - 1
    return evidence._replace(fringes=fringes.astype(np.float32))


def test_what_is_typical_is_learned_for_bright_and_for_faint_hits() -> None:
    likeness = FringeLikeness.of(hits(2000, 600, 1))
    np.testing.assert_allclose(likeness.slope[:3], SLOPE, atol=0.004)
    for photons in (200, 2000):
        distance = likeness.distance(hits(500, photons, 2))
        assert 0.6 < np.median(distance) / chdtri(3, 0.5) < 1.5


def test_stronger_fringes_are_far_and_their_band_is_named() -> None:
    likeness = FringeLikeness.of(hits(2000, 600, 1))
    strong = hits(100, 600, 3, factor=6.0)
    assert (likeness.distance(strong) > chdtri(3, 0.001)).mean() > 0.9
    assert (likeness.excess(strong).argmax(axis=1) == 2).mean() > 0.95
