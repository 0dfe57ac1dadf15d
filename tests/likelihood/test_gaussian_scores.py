"""The Gaussian merge from scores alone: the product that the fluences need is in them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.product import product_of
from orienteer.posterior.scores import ScoreStore
from orienteer.source.patterns import Patterns


@pytest.mark.parametrize("beta", [1.0, 0.01])
def test_weights_from_scores_of_the_store_are_those_from_the_product(beta: float) -> None:
    rng = np.random.default_rng(1)
    T, D, P = 12, 7, 40
    slices = rng.uniform(0.5, 2.0, (T, P)).astype(np.float32)
    weights = rng.uniform(2.0, 9.0, P).astype(np.float32)
    counts = rng.poisson(slices[rng.integers(T, size=D)] * weights * rng.uniform(0.3, 3.0, (D, 1)))
    counts[2] = 0
    frames = FrameBatch.prepare(Patterns(counts.astype(np.uint16)), np.arange(P), P, "cpu", "dense")
    gaussian = Gaussian(PixelModel(weights, weights, P), 4.0)
    operand, offsets = gaussian.expand(slices)
    product = product_of(frames).scores(operand)
    scores = gaussian.scores(product, offsets, frames)
    log_prior = rng.normal(size=T).astype(np.float32)
    store = ScoreStore(T, D, "cpu", 1.0)
    store.add(0, scores, log_prior, np.full(D, beta, np.float32))
    responsibilities = store.responsibilities(0, T)
    kept = store.scores(0, T)
    assert kept == pytest.approx(scores, rel=1e-4, abs=1e-3)
    largest = float(offsets.max())
    of_product = gaussian.merge_weights(responsibilities, frames, product=product, largest_offset=largest)
    of_scores = gaussian.merge_weights(
        responsibilities, frames, scores=kept, offsets=offsets, largest_offset=largest
    )
    assert of_scores.numerator == pytest.approx(of_product.numerator, rel=1e-4, abs=1e-7)
    assert of_scores.row == pytest.approx(of_product.row)
    for found in (of_product, of_scores):
        assert found.largest is not None
        assert 0.1 * found.largest < found.numerator.max() <= found.largest * (1 + 1e-6)
    assert gaussian.merge_weights(responsibilities, frames, product=product).largest is None


@given(seed=st.integers(0, 10_000), masked=st.booleans())
@settings(max_examples=30, deadline=None)
def test_no_weight_is_larger_than_is_promised(seed: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    T, D, P = 5, 6, 20
    slices = rng.gamma(0.5, 2.0, (T, P)).astype(np.float32)
    correction = rng.uniform(0.1, 9.0, P).astype(np.float32)
    counts = rng.poisson(rng.gamma(0.3, 5.0, (D, P))).astype(np.uint16)
    columns = {"frame_mask": np.where(rng.random((D, P)) < 0.3, 2, 0).astype(np.uint8)} if masked else {}
    frames = FrameBatch.prepare(Patterns(counts, columns=columns), np.arange(P), P, "cpu", "dense")
    gaussian = Gaussian(PixelModel(correction, correction, P), 1.0)
    operand, offsets = gaussian.expand(slices)
    found = gaussian.merge_weights(
        np.ones((T, D), np.float32), frames, product=product_of(frames).scores(operand),
        largest_offset=float(offsets.max()),
    )  # fmt: skip
    assert found.largest is not None
    assert found.numerator.max() <= found.largest * (1 + 1e-5)


def test_dark_frames_promise_nothing() -> None:
    frames = FrameBatch.prepare(Patterns(np.zeros((3, 4), np.uint16)), np.arange(4), 4, "cpu", "dense")
    assert frames.least_square == np.inf
    assert frames[:0].least_square == np.inf


def test_scores_are_given_back_in_the_tiles_in_which_they_came() -> None:
    scores = np.random.default_rng(2).normal(size=(9, 4)).astype(np.float32)
    store = ScoreStore(9, 4, "cpu", 1.0)
    for first in (0, 3, 6):
        store.add(first, scores[first : first + 3], np.zeros(3, np.float32), np.float32(0.5))
    assert store.scores(3, 6) == pytest.approx(scores[3:6], abs=1e-5)
    with pytest.raises(Exception, match="not added as one tile"):
        store.scores(2, 5)
