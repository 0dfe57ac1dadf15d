"""Photons in rings, against sums pixel by pixel."""

import numpy as np
import pytest

from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.hits.rings import Rings
from orienteer.source.patterns import FRAME_MASK, Patterns

MASK = np.zeros(256, np.uint8)
MASK[[3, 100, 120]] = PixelUse.NEVER
DETECTOR = square_detector(16, pixel_size_m=0.005, distance_m=0.2).with_mask(MASK)
FRAMES = np.random.default_rng(1).poisson(0.7, (5, 256)).astype(np.uint16)


def test_rings_hold_each_used_pixel_once_and_go_outwards() -> None:
    rings = Rings(DETECTOR, 2.0)
    assert len(rings.pixels) == 253
    assert set(np.unique(rings.ring)) == set(range(rings.n))
    nearest = [rings.q_inv_A[rings.ring == r].min() for r in range(rings.n)]
    farthest = [rings.q_inv_A[rings.ring == r].max() for r in range(rings.n)]
    assert all(far < near for far, near in zip(farthest[:-1], nearest[1:], strict=True))


def test_lists_of_photons_and_frames_give_the_sums_over_pixels() -> None:
    rings = Rings(DETECTOR, 2.0)
    slow = np.zeros((5, rings.n))
    for d in range(5):
        for pixel, ring in zip(rings.pixels, rings.ring, strict=True):
            slow[d, ring] += FRAMES[d, pixel]
    np.testing.assert_array_equal(rings.photons(Patterns(FRAMES)), slow)
    np.testing.assert_array_equal(rings.photons(Patterns(Patterns(FRAMES).sparse())), slow)


def test_a_ring_that_a_frame_hides_in_part_is_scaled_up() -> None:
    rings = Rings(DETECTOR, 2.0)
    outer = rings.pixels[rings.ring == rings.n - 3]
    level = np.full((1, 256), 2.0, np.float32)
    hidden = np.zeros((1, 256), np.uint8)
    hidden[0, outer[: len(outer) // 2]] = PixelUse.NEVER
    whole = rings.photons(Patterns(level))
    partly = rings.photons(Patterns(level, columns={FRAME_MASK: hidden}))
    np.testing.assert_allclose(partly, whole, rtol=0.05)


def test_signal_that_is_no_number_adds_nothing() -> None:
    frames = FRAMES.astype(np.float32)
    frames[0, 40] = np.nan
    dark = FRAMES.copy()
    dark[0, 40] = 0
    rings = Rings(DETECTOR, 2.0)
    np.testing.assert_array_equal(rings.photons(Patterns(frames)), rings.photons(Patterns(dark)))
    assert np.isnan(frames[0, 40]), "the frames of the caller were changed"


def test_hits_of_another_detector_and_a_detector_without_pixels_are_refused() -> None:
    with pytest.raises(GeometryMismatch, match="100 pixels"):
        Rings(DETECTOR, 2.0).photons(Patterns(np.zeros((2, 100), np.uint8)))
    with pytest.raises(OrienteerError, match="fewer than two pixels"):
        Rings(DETECTOR.with_mask(np.full(256, PixelUse.NEVER)), 2.0)
