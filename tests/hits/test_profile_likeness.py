"""Profiles of a particle drawn as the test assumes them, and of others."""

import numpy as np
from scipy.special import chdtri

from orienteer.hits.evidence import Evidence
from orienteer.hits.profile_likeness import ProfileLikeness, ring_groups

G = 30
SHAPE = np.exp(-np.arange(G) / 6)
BACKGROUND = np.linspace(5, 40, G)


def hits(n: int, photons: float, seed: int, spread: float = 0.1, tilt: float = 0.0) -> Evidence:
    """Profiles with two kinds of random deviations, and possibly a tilt that others do not have."""
    draw = np.random.default_rng(seed)
    waves = np.stack([np.cos(np.arange(G) / 4), np.sin(np.arange(G) / 7)])
    profile = SHAPE * (1 + spread * draw.standard_normal((n, 2)) @ waves)
    profile *= np.exp(tilt * np.linspace(-1, 1, G))
    profile = np.maximum(profile, 0)
    brightness = photons * draw.uniform(0.5, 2, n)
    signal = brightness[:, None] * profile / SHAPE.sum()
    strength = 1 + 0.05 * draw.standard_normal((n, 1))
    rings = draw.poisson(signal + strength * BACKGROUND).astype(np.float32)
    behind = np.tile(BACKGROUND.astype(np.float32), (n, 1))
    seen = np.maximum(rings.sum(1) - behind.sum(1), 1).astype(np.float32)
    return Evidence(rings, behind, np.ones((n, 2), np.float32), seen, *np.ones((2, n), np.float32))


def test_groups_of_rings_are_neighbours_and_have_similar_light() -> None:
    group = ring_groups(hits(200, 2000, 1))
    assert set(np.diff(group)) <= {0, 1}
    assert 8 <= group.max() + 1 <= 12


def test_distances_of_the_particle_are_those_of_chance_however_bright_the_hits() -> None:
    learned = hits(800, 1500, 2)
    likeness = ProfileLikeness.of(ring_groups(learned), learned)
    for photons in (150, 500, 1500):
        distance = likeness.distance(hits(500, photons, 3))
        assert 0.75 < np.median(distance) / chdtri(len(likeness.profile) - 2, 0.5) < 1.35, photons


def test_another_profile_is_far_where_there_is_light_enough_to_tell() -> None:
    learned = hits(800, 1500, 2)
    likeness = ProfileLikeness.of(ring_groups(learned), learned)
    limit = chdtri(len(likeness.profile) - 2, 0.001)
    assert (likeness.distance(hits(200, 3000, 4, tilt=2.0)) > limit).mean() > 0.95
    assert (likeness.distance(hits(200, 30, 4, tilt=2.0)) > limit).mean() < 0.05


def test_no_light_at_all_is_no_error() -> None:
    dark = hits(60, 1e-6, 5)
    likeness = ProfileLikeness.of(ring_groups(dark), dark)
    assert np.isfinite(likeness.distance(dark)).all()
