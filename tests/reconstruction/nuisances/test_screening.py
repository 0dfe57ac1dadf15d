"""Frames of another size are told by their radial profile; those of the same size never."""

import numpy as np

from orienteer.reconstruction.nuisances.screening import RingPhotons, unlike_others

RNG = np.random.default_rng(5)
RADIUS = np.arange(40)


def frames(n: int, width: float, photons: np.ndarray, scatter: float = 0.2) -> np.ndarray:
    """Ring photons of particles whose profile falls over ``width`` rings and varies with the orientation."""
    profile = np.exp(-RADIUS / width) * RNG.gamma(1 / scatter**2, scatter**2, size=(n, 40))
    return RNG.poisson(profile / profile.sum(axis=1, keepdims=True) * photons[:, None]).astype(float)


def test_other_sizes_are_found_at_any_brightness() -> None:
    brightness = 1000 * np.exp(RNG.normal(size=600))
    good = frames(600, 12.0, brightness)
    other = np.concatenate(
        [frames(100, width, 1000 * np.exp(RNG.normal(size=100) + 1)) for width in (5.0, 30.0)]
    )
    photons = np.concatenate([good, other])
    unlike = unlike_others(RingPhotons(photons, np.zeros(40)))
    assert unlike[:600].mean() < 0.04
    assert unlike[600:].mean() > 0.85


def test_frames_of_one_kind_stay() -> None:
    photons = frames(500, 12.0, np.full(500, 300.0))
    assert unlike_others(RingPhotons(photons, np.zeros(40))).mean() < 0.03
    same = np.tile(photons[:1], (50, 1))
    assert not unlike_others(RingPhotons(same, np.zeros(40))).any()


def test_dark_and_few_frames_are_nobody() -> None:
    photons = frames(100, 12.0, np.full(100, 300.0))
    photons[:10] = 0
    assert not unlike_others(RingPhotons(photons, np.zeros(40)))[:10].any()
    assert not unlike_others(RingPhotons(photons[:12], np.zeros(40))).any()
