"""The scores of empty shots, found among those of all shots."""

import numpy as np
import pytest

from orienteer.hits.empirical_null import EmpiricalNull


def mixture(draw, share_of_hits, n=2000, centre=0.3, width=1.2):
    n_hits = int(share_of_hits * n)
    empty = draw.normal(centre, width, n - n_hits)
    hits = draw.uniform(centre + 8 * width, centre + 40 * width, n_hits)
    return np.concatenate([empty, hits]), np.arange(n) >= n - n_hits


@pytest.mark.parametrize("share_of_hits", [0, 0.001, 0.1, 0.5, 0.75])
def test_centre_and_width_are_those_of_empty_shots_however_many_hits_there_are(draw, share_of_hits):
    scores, _ = mixture(draw, share_of_hits)
    null = EmpiricalNull.of(scores)
    assert null.centre == pytest.approx(0.3, abs=0.15)
    assert null.width == pytest.approx(1.2, rel=0.1)
    assert null.share == pytest.approx(1 - share_of_hits, abs=0.03)


def test_shots_without_a_pulse_are_not_taken_for_the_empty_ones(draw):
    scores, _ = mixture(draw, 0.1)
    dark = draw.normal(-40, 0.1, 300)
    null = EmpiricalNull.of(np.concatenate([scores, dark]))
    assert null.centre == pytest.approx(0.3, abs=0.15)


def test_hits_that_are_more_and_as_narrow_are_not_taken_for_the_empty_ones(draw):
    scores = np.concatenate([draw.normal(0, 1, 600), draw.normal(20, 1, 1400)])
    assert EmpiricalNull.of(scores).centre == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("false_hits", [0.002, 0.02])
def test_the_threshold_keeps_empty_shots_out_of_the_hits(draw, false_hits):
    n_false = n_hits = 0
    for _ in range(20):
        scores, is_hit = mixture(draw, 0.1)
        null = EmpiricalNull.of(scores)
        above = null.standardised(scores) >= null.threshold(scores, false_hits)
        assert above[is_hit].all()
        n_false, n_hits = n_false + (above & ~is_hit).sum(), n_hits + above.sum()
    assert n_false / n_hits < 2.5 * false_hits


def test_more_hits_lower_the_threshold_and_none_raise_it(draw):
    thresholds = []
    for share_of_hits in (0, 0.01, 0.1, 0.5):
        scores, _ = mixture(draw, share_of_hits)
        thresholds.append(EmpiricalNull.of(scores).threshold(scores, 0.01))
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > 3.8
    assert thresholds[-1] < 3


@pytest.mark.parametrize("scores", [[], [2.0], [2.0] * 50, [0.0] * 40 + [1.0] * 10])
def test_few_and_equal_scores_are_no_trouble(scores):
    null = EmpiricalNull.of(np.array(scores, float))
    assert np.isfinite([null.centre, null.width, null.threshold(np.array(scores, float), 0.01)]).all()
    assert null.width > 0
