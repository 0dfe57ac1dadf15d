"""What a hit finder remembers of empty shots."""

import numpy as np
import pytest

from orienteer.hits.finding import BLOCK
from orienteer.hits.model import HitModel
from orienteer.source.patterns import Patterns

P = 100


def after_blocks(draw, photons_of_blocks):
    """A model after blocks of empty shots with so many photons each on average."""
    model = HitModel(np.zeros(P, np.int64), None, memory=2000, false_hits=0.002, threshold=0.0)
    for photons in photons_of_blocks:
        shots = Patterns(draw.poisson(photons / P, (BLOCK, P)).astype(np.uint8))
        everything = np.ones(BLOCK, bool)
        model.learn(shots, model.sums(shots), everything, ~everything)
        model.close()
    return model


@pytest.mark.parametrize("photons", [0.05, 0.3, 3.0, 300.0])
def test_a_steady_background_is_remembered_however_few_its_photons_are(draw, photons):
    model = after_blocks(draw, [photons] * 16)
    assert model.empty.n > 1500
    assert model.background.sum() == pytest.approx(photons, rel=0.3)


@pytest.mark.parametrize("photons", [3.0, 300.0])
def test_a_background_that_changes_its_strength_is_forgotten_at_once(draw, photons):
    model = after_blocks(draw, [photons] * 6 + [2 * photons])
    assert model.empty.n < 1.2 * BLOCK
    assert model.background.sum() == pytest.approx(2 * photons, rel=0.15)
