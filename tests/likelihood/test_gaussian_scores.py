"""The Gaussian merge from scores alone: the product that the fluences need is in them."""

import numpy as np
import pytest

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
    of_product = gaussian.merge_weights(responsibilities, frames, product=product)
    of_scores = gaussian.merge_weights(responsibilities, frames, scores=kept, offsets=offsets)
    assert of_scores.numerator == pytest.approx(of_product.numerator, rel=1e-4, abs=1e-7)
    assert of_scores.row == pytest.approx(of_product.row)
    assert of_scores.largest is not None
    assert of_scores.numerator.max() <= of_scores.largest * (1 + 1e-6)


def test_scores_are_given_back_in_the_tiles_in_which_they_came() -> None:
    scores = np.random.default_rng(2).normal(size=(9, 4)).astype(np.float32)
    store = ScoreStore(9, 4, "cpu", 1.0)
    for first in (0, 3, 6):
        store.add(first, scores[first : first + 3], np.zeros(3, np.float32), np.float32(0.5))
    assert store.scores(3, 6) == pytest.approx(scores[3:6], abs=1e-5)
    with pytest.raises(Exception, match="not added as one tile"):
        store.scores(2, 5)
