"""Fringes of two spheres, and their strength against a sum over pixels."""

import tracemalloc

import numpy as np

from orienteer.detector.square import square_detector
from orienteer.hits.fringes import Fringes, pixel_spacing_inv_A
from orienteer.hits.rings import Rings
from orienteer.hits.sphere import sphere_intensity
from orienteer.source.patterns import Patterns, SparsePhotons

WAVELENGTH_A, DIAMETER_A, SEPARATION_A = 2.7, 70.0, 120.0
DETECTOR = square_detector(64, pixel_size_m=0.00125, distance_m=0.2)
RINGS = Rings(DETECTOR, WAVELENGTH_A)
SPACING = pixel_spacing_inv_A(DETECTOR, RINGS.pixels, WAVELENGTH_A)
FRINGES = Fringes(DETECTOR, RINGS, WAVELENGTH_A, SPACING)
BACKGROUND = np.full(64 * 64, 0.1)


def spheres(n: int, photons: float, separation_A: float = 0.0) -> Patterns:
    """Hits of one sphere, or of two side by side in directions drawn at random."""
    draw = np.random.default_rng(5)
    q = DETECTOR.q_inv_A(WAVELENGTH_A)
    round_one = sphere_intensity(DETECTOR.q_length_inv_A(WAVELENGTH_A), DIAMETER_A)
    angle = draw.uniform(0, 2 * np.pi, n)
    phase = 2 * np.pi * separation_A * (np.cos(angle)[:, None] * q[:, 0] + np.sin(angle)[:, None] * q[:, 1])
    signal = round_one * (1 + np.cos(phase) * (separation_A > 0))
    return Patterns(draw.poisson(photons * signal / round_one.sum() + BACKGROUND).astype(np.uint16))


def strengths(hits: Patterns) -> np.ndarray:
    return FRINGES.strengths(hits, RINGS.photons(hits), BACKGROUND, np.ones(len(hits), np.float32))


def test_two_spheres_show_fringes_at_their_separation_and_one_shows_noise() -> None:
    one, two = strengths(spheres(40, 500)), strengths(spheres(40, 500, SEPARATION_A))
    band = int(np.searchsorted(FRINGES.separation_A, SEPARATION_A)) - 1
    assert set(two.argmax(axis=1)) <= {band - 1, band, band + 1}
    assert two.max(axis=1).min() > 3 * one.max()
    # The largest of some hundred exponentially distributed numbers of mean 1.
    assert one.max() < 20


def test_the_power_is_that_of_a_sum_over_pixels() -> None:
    hits = spheres(1, 500, SEPARATION_A)
    counts, rings = hits.dense()[0].astype(float), RINGS.photons(hits)[0]
    signal = np.maximum(rings - RINGS.sums(BACKGROUND[RINGS.pixels]), 0) / RINGS.sums(RINGS.correction)
    bright = signal[RINGS.ring] * RINGS.correction
    expected = bright + 0.1
    weight = bright / expected
    place = np.floor(DETECTOR.q_inv_A(WAVELENGTH_A)[:, :2] / SPACING)
    inside = ((place >= -32) & (place < 32)).all(axis=1)
    values = np.where(inside, (counts - expected) * weight, 0)
    noise = (expected * weight**2)[inside].sum()
    power: dict[int, list[float]] = {}
    for along in range(-32, 32):
        for across in range(33):
            wave = (values * np.exp(-2j * np.pi * (place @ [across, along]) / 64)).sum()
            length = np.hypot(along, across) / 64 / SPACING
            band = min(int(length / FRINGES.separation_A[1]), 11)
            power.setdefault(band, []).append(abs(wave) ** 2 / noise)
    slow = np.array([max(power[band]) for band in range(12)])
    np.testing.assert_allclose(strengths(hits)[0], slow, rtol=1e-3)


def test_cells_may_be_coarser_than_pixels() -> None:
    coarse = Fringes(DETECTOR, RINGS, WAVELENGTH_A, 1.7 * SPACING)
    hits = spheres(20, 500, SEPARATION_A)
    found = coarse.strengths(hits, RINGS.photons(hits), BACKGROUND, np.ones(20, np.float32))
    assert np.median(found.max(axis=1)) > 0.5 * np.median(strengths(hits).max(axis=1))


def test_hits_of_a_large_detector_are_looked_at_few_at_once() -> None:
    """Whole frames of all of them would take two GiB."""
    detector = square_detector(1024, pixel_size_m=0.0002, distance_m=0.2)
    rings = Rings(detector, WAVELENGTH_A)
    fringes = Fringes(detector, rings, WAVELENGTH_A, 8 * SPACING)
    draw, lit, n = np.random.default_rng(3), 2000, 80
    pixel = np.sort(draw.choice(detector.n_pixels, (n, lit)), axis=1).ravel().astype(np.int32)
    start = lit * np.arange(n + 1)
    hits = Patterns(SparsePhotons(start, pixel, np.ones(n * lit, np.int32), detector.n_pixels))
    photons, background = rings.photons(hits), np.full(detector.n_pixels, 0.001)
    tracemalloc.start()
    try:
        found = fringes.strengths(hits, photons, background, np.ones(n, np.float32))
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.shape == (n, 12)
    assert most_bytes < 200 * 2**20
