"""Junk: lumps that differ from one another, repeat with the seed, and stay about as large as the particle."""

import numpy as np

from orienteer.simulation.junk import junk_particles


def test_lumps_differ_and_repeat_with_the_seed() -> None:
    q = np.random.default_rng(0).uniform(-0.02, 0.02, (40, 3))
    first, again, other = (junk_particles(4, 100.0, seed) for seed in (1, 1, 2))
    patterns = np.array([np.abs(lump.amplitude(q)) for lump in first])
    np.testing.assert_array_equal(patterns, [np.abs(lump.amplitude(q)) for lump in again])
    everything = np.concatenate([patterns, [np.abs(lump.amplitude(q)) for lump in other]])
    for i in range(8):
        for j in range(i):
            assert np.linalg.norm(everything[i] - everything[j]) > 0.01 * np.linalg.norm(everything[i])


def test_lumps_are_about_as_large_as_the_particle() -> None:
    assert all(10 < lump.radius_A < 500 for lump in junk_particles(50, 100.0, 3))
