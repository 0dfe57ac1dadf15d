"""Polar bins: turning is a shift, and its adjoint turns back."""

import numpy as np
import pytest

from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.hits.polar import PolarGrid
from orienteer.source.patterns import Patterns

MASK = np.zeros(32 * 32, np.uint8)
MASK[500:520] = PixelUse.NEVER
DETECTOR = square_detector(32, pixel_size_m=0.002, distance_m=0.2).with_mask(MASK)
GRID = PolarGrid(DETECTOR, 2.0, 0.07, n_rings=6, n_angles=12)


def test_bins_hold_the_photons_of_used_pixels_within_the_edge() -> None:
    frames = np.random.default_rng(1).poisson(0.5, (3, 1024))
    q = DETECTOR.q_inv_A(2.0)
    slow = np.zeros((3, 6, 12))
    for p in np.flatnonzero((MASK == 0) & (DETECTOR.q_length_inv_A(2.0) < 0.07)):
        ring = int(np.linalg.norm(q[p]) / 0.07 * 6)
        angle = int(np.mod(np.arctan2(q[p, 1], q[p, 0]), 2 * np.pi) / (2 * np.pi) * 12)
        slow[:, ring, angle] += frames[:, p]
    np.testing.assert_array_equal(GRID.photons(Patterns(frames)), slow.reshape(3, -1))
    assert GRID.correction[slow.sum(axis=0).reshape(-1) > 0].min() > 0


def test_turning_by_three_bins_is_turning_a_picture_by_a_quarter() -> None:
    template = np.random.default_rng(2).random((6, 12))
    quarter = GRID.turned(template)[3].reshape(6, 12)
    # Rows go up and columns to the right, so a turn from x to y is one of np.rot90 the other way round.
    np.testing.assert_array_equal(GRID.picture(quarter, 40), np.rot90(GRID.picture(template, 40), -1))


def test_turning_back_is_the_adjoint_of_turning() -> None:
    draw = np.random.default_rng(3)
    template, rows = draw.random((6, 12)), draw.random((12, 72))
    assert np.isclose((GRID.turned(template) * rows).sum(), (template * GRID.turned_back(rows)).sum())


def test_an_edge_without_pixels_and_hits_of_another_detector_are_refused() -> None:
    with pytest.raises(OrienteerError, match="no usable pixel"):
        PolarGrid(DETECTOR, 2.0, 1e-6)
    with pytest.raises(GeometryMismatch, match="99 pixels"):
        GRID.photons(Patterns(np.zeros((1, 99), np.uint8)))
