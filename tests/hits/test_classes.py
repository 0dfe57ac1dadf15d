"""Classes in the plane: patterns that are known are found again, turned as they were."""

import numpy as np
import pytest

from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.hits.class_sums import ClassModel, expect
from orienteer.hits.classes import Classes, classify
from orienteer.hits.polar import PolarGrid
from orienteer.source.patterns import Patterns

WAVELENGTH_A = 2.7
DETECTOR = square_detector(64, pixel_size_m=0.00125, distance_m=0.2)
BACKGROUND = np.full(64 * 64, 0.05)
N = 200


def patterns(kind: np.ndarray, turn: np.ndarray, photons: float, seed: int) -> Patterns:
    """Rods of two lengths (kind 0 and 1), turned about the beam, and balls (kind 2)."""
    draw = np.random.default_rng(seed)
    x, y = DETECTOR.q_inv_A(WAVELENGTH_A)[:, :2].T
    frames = []
    for one, angle in zip(kind, turn, strict=True):
        long, wide = ((90, 30), (50, 30), (45, 45))[one]
        u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        shape = np.exp(-((long * u) ** 2) - (wide * v) ** 2)
        frames.append(photons * draw.uniform(0.5, 2) * shape / shape.sum() + BACKGROUND)
    return Patterns(draw.poisson(np.array(frames)).astype(np.uint16))


DRAW = np.random.default_rng(4)
KIND, TURN = DRAW.integers(0, 3, N), DRAW.uniform(0, np.pi, N)


@pytest.fixture(scope="module")
def classes() -> Classes:
    hits = patterns(KIND, TURN, 1500, 5)
    return classify(hits, DETECTOR, WAVELENGTH_A, 3, background=BACKGROUND, iterations=10, seed=1)


def test_hits_of_one_class_are_of_one_kind(classes: Classes) -> None:
    right = sum(np.bincount(KIND[classes.class_of == c]).max(initial=0) for c in range(4))
    assert right > 0.93 * N


def test_angles_are_those_of_the_rods_but_for_a_common_one(classes: Classes) -> None:
    rods = KIND == 0
    c = np.bincount(classes.class_of[rods]).argmax()
    chosen = rods & (classes.class_of == c)
    # A rod that is turned by half a turn looks the same.
    rest = 2 * (np.radians(classes.angle_deg[chosen]) - TURN[chosen])
    middle = np.angle(np.exp(1j * rest).mean())
    error_deg = np.degrees(np.angle(np.exp(1j * (rest - middle)))) / 2
    assert np.sqrt((error_deg**2).mean()) < 8


def test_averages_are_as_bright_as_the_hits_without_background(classes: Classes) -> None:
    inside = classes.grid.correction.reshape(1, *classes.average.shape[1:])
    light = (classes.average * inside).sum(axis=(1, 2))
    photons = classes.grid.photons(patterns(KIND, TURN, 1500, 5)).sum(axis=1)
    behind = classes.grid.background(BACKGROUND).sum()
    used = classes.share > 0.1
    np.testing.assert_allclose(light[used], (photons - behind).mean(), rtol=0.05)


def test_the_likelihood_never_falls(classes: Classes) -> None:
    assert np.diff(classes.log_likelihood).min() > -1e-3
    assert classes.log_likelihood[-1] > classes.log_likelihood[0] + 1


def test_most_balls_gather_in_the_round_class() -> None:
    hits = patterns(np.full(100, 2), TURN[:100], 800, 6)
    found = classify(hits, DETECTOR, WAVELENGTH_A, 2, background=BACKGROUND, iterations=8, seed=2)
    assert (found.class_of == found.round_class).mean() > 0.6
    spread = found.average.std(axis=2).sum(axis=1) / found.average.sum(axis=(1, 2))
    assert spread[found.round_class] < 1e-6
    assert found.pictures(32).shape == (3, 32, 32)


def test_probabilities_are_those_of_a_slow_sum() -> None:
    draw = np.random.default_rng(7)
    grid = PolarGrid(DETECTOR, WAVELENGTH_A, 0.05, n_rings=3, n_angles=4)
    model = ClassModel(draw.random((3, 3, 4)) / 500, np.array([0.5, 0.3, 0.2]))
    model.template[-1] = model.template[-1].mean(axis=1, keepdims=True)
    photons = draw.poisson(20, (4, 12)).astype(np.float32)
    background, brightness = draw.random(12) * 5, np.full(4, 1.25**30)
    found = expect(grid, model, photons, background, brightness)
    for d in range(4):
        total = 0.0
        for c in range(3):
            for a in range(4):
                expected = 1.25**30 * np.roll(model.template[c], a, axis=1).reshape(-1) * grid.correction
                expected = expected + background
                total += model.share[c] / 4 * np.exp((photons[d] * np.log(expected) - expected).sum() - 300)
        assert np.isclose(found.log_evidence[d], np.log(total) + 300, atol=1e-3)


def test_no_hits_no_classes_and_other_backgrounds_are_refused() -> None:
    hits = patterns(KIND[:2], TURN[:2], 100, 8)
    with pytest.raises(OrienteerError, match="at least one hit"):
        classify(hits, DETECTOR, WAVELENGTH_A, 0)
    with pytest.raises(OrienteerError, match="at least one hit"):
        classify(hits[:0], DETECTOR, WAVELENGTH_A, 2)
    with pytest.raises(GeometryMismatch, match="the background has shape"):
        classify(hits, DETECTOR, WAVELENGTH_A, 2, background=BACKGROUND[:9])
