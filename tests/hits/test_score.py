"""The score: normal for empty shots, whatever their background does, and as good as weighted sums can be."""

import numpy as np
import pytest
from scipy.stats import poisson

from orienteer.hits.score import LIT_SHARE, Score, lit_from, rates

P = 400


def forms():
    x = np.linspace(0, 1, P)
    return 0.1 + 0.3 * x, 2.5 * np.exp(-8 * x)


@pytest.mark.parametrize("jitter", [0.0, 0.3])
def test_scores_of_empty_shots_are_normal(draw, jitter):
    b, m = forms()
    strength = np.exp(draw.normal(0, jitter, 20000) - jitter**2 / 2)
    K = draw.poisson(strength[:, None] * b)
    score = Score.between(b, m, np.exp(jitter**2) - 1)
    z = score.of(K @ score.weight.astype(np.float64), K.sum(axis=1))
    assert z.mean() == pytest.approx(0, abs=0.05)
    assert z.std() == pytest.approx(1, abs=0.06)
    assert np.mean(z > 3) < 4e-3
    assert np.mean((z - z.mean()) ** 3) == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize("variance", [0.0, 0.05, 1.0])
def test_no_other_weights_tell_hits_from_empty_shots_better_by_much(draw, variance):
    """The best linear weights are C⁻¹ m, with the covariance C of empty shots."""
    b, m = forms()
    m = 0.2 * m  # where logarithms are nearly what they are logarithms of
    score = Score.between(b, m, variance)
    covariance = np.diag(b) + variance * np.outer(b, b)

    def power(w):
        return (w @ m) ** 2 / (w @ covariance @ w)

    assert power(score.weight.astype(float)) > 0.93 * power(np.linalg.solve(covariance, m))
    assert power(score.weight.astype(float)) >= 0.999 * max(power(np.ones(P)), power(np.log1p(m / b)))
    assert score.mean == pytest.approx(score.weight @ b, rel=1e-4, abs=1e-4)


def test_photons_are_counted_while_no_hit_is_known():
    b, _ = forms()
    np.testing.assert_array_equal(Score.between(b, None, 0.1).weight, np.ones(P, np.float32))


def test_unused_pixels_have_no_weight():
    b, m = forms()
    b[::3] = 0
    assert not Score.between(b, m, 0.0).weight[::3].any()


def test_rates_are_means_where_much_is_known_and_those_of_the_group_where_little_is():
    group = np.repeat([0, 1, -1], 100)
    sums = np.where(group == 0, 30.0, 900.0)
    sums[0], sums[100] = 0, 9000
    known = rates(sums, 1000, group)
    assert known[0] < 0.01
    assert known[100] == pytest.approx(9, rel=0.02)
    assert known[150] == pytest.approx(0.9, rel=0.02)
    assert not known[group < 0].any()
    one_photon = np.zeros(300)
    one_photon[5] = 1
    few = rates(one_photon, 1, group)
    assert few[5] < 2 * few[6]
    assert (few[group >= 0] > 0).all()


@pytest.mark.parametrize("mean", [0.001, 0.06, 0.5, 5.0, 31.0, 900.0, 1e4])
def test_the_background_alone_lights_less_than_one_pixel_in_a_hundred(mean):
    level = int(lit_from(np.array([mean]))[0])
    assert poisson.sf(level - 1, mean) < 1.05 * LIT_SHARE
    assert level == 1 or poisson.sf(level - 2, mean) > 0.9 * LIT_SHARE
