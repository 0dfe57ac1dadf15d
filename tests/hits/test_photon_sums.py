"""Sums over pixels and shots, against sums written out, for every form that frames can have."""

import numpy as np
import pytest

from orienteer.detector.masks import PixelUse
from orienteer.hits.photon_sums import add_frames, sum_pixels
from orienteer.source.patterns import FRAME_MASK, Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FORMS = ["uint8", "uint16", "int32", "int64", "float32", "float64", "lists"]
N, P = 37, 2500


def made(draw, form, device):
    K = draw.poisson(0.4, (N, P))
    frames = K if form == "lists" else K.astype(form)
    patterns = Patterns(frames)
    return K, (Patterns(patterns.sparse()) if form == "lists" else patterns).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
def test_sums_over_pixels_are_those_of_a_matrix_product(draw, form, device):
    K, patterns = made(draw, form, device)
    used, level = draw.random(P) < 0.8, draw.integers(1, 4, P).astype(np.float32)
    weight = np.where(used, draw.normal(size=P), 0).astype(np.float32)
    found = sum_pixels(patterns, used, level, weight)
    np.testing.assert_array_equal(found.photons, K[:, used].sum(axis=1))
    np.testing.assert_array_equal(found.n_lit, (level <= K)[:, used].sum(axis=1))
    np.testing.assert_allclose(found.weighted, K @ weight.astype(np.float64), rtol=1e-5, atol=1e-3)
    assert found.photons.dtype == (np.float64 if form.startswith("float") else np.int64)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
def test_sums_over_shots_add_to_what_is_there(draw, form, device):
    K, patterns = made(draw, form, device)
    factor = np.where(draw.random(N) < 0.5, draw.random(N), 0)
    sums = np.ones(P)
    add_frames(patterns, factor, sums)
    np.testing.assert_allclose(sums, 1 + factor @ K, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_nan_adds_nothing(draw, device):
    K, _ = made(draw, "float32", "cpu")
    signal = K.astype(np.float32)
    signal[:, 7] = np.nan
    K[:, 7] = 0
    ones, sums = np.ones(P, np.float32), np.zeros(P)
    found = sum_pixels(Patterns(signal).to(device), np.ones(P, bool), ones, ones)
    add_frames(Patterns(signal).to(device), np.ones(N), sums)
    np.testing.assert_allclose(found.weighted, K.sum(axis=1))
    np.testing.assert_allclose(sums, K.sum(axis=0))


@pytest.mark.parametrize("form", ["uint16", "lists"])
def test_what_a_frame_forbids_is_not_counted(draw, form):
    K, patterns = made(draw, form, "cpu")
    mask = np.where(draw.random((N, P)) < 0.3, PixelUse.NEVER, 0).astype(np.uint8)
    allowed = np.where(mask, 0, K)
    ones, sums = np.ones(P, np.float32), np.zeros(P)
    patterns = patterns.with_columns(**{FRAME_MASK: mask})
    assert (sum_pixels(patterns, np.ones(P, bool), ones, ones).photons == allowed.sum(axis=1)).all()
    add_frames(patterns, np.ones(N), sums)
    np.testing.assert_array_equal(sums, allowed.sum(axis=0))


def test_no_shots_have_no_sums():
    none = Patterns(np.zeros((0, P), np.uint16))
    ones = np.ones(P, np.float32)
    assert len(sum_pixels(none, np.ones(P, bool), ones, ones).photons) == 0
