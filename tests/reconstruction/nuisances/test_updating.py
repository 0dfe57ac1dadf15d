"""What is learnt about frames beside their poses."""

import numpy as np

from orienteer.reconstruction.nuisances.updating import odds_in_states


def test_of_dim_frames_none_is_strange_that_lies_within_the_spread_of_its_state() -> None:
    """At a hundred photons chance makes odds of -20 nats as common as those of +20: they say nothing."""
    rng = np.random.default_rng(0)
    model = np.repeat([0, 1], 5000)
    odds = rng.normal(np.where(model == 0, 0.3, -7.0), 8.0)
    relative = odds_in_states(odds, model, np.ones(10_000, dtype=bool))
    assert (relative < 0).sum() <= 5


def test_what_is_strange_among_frames_that_a_state_explains_stays_strange() -> None:
    rng = np.random.default_rng(0)
    model, junk = np.zeros(1000, dtype=np.int64), np.arange(1000) < 300
    odds = np.where(junk, rng.normal(-60, 10, 1000), rng.normal(40, 12, 1000))
    relative = odds_in_states(odds, model, np.ones(1000, dtype=bool))
    assert (relative[junk] < 0).mean() > 0.99
    assert (relative[~junk] > 0).all()


def test_frames_of_no_state_keep_their_odds() -> None:
    odds = np.array([5.0, 8.0, 6.0, -1.0])
    model = np.array([0, 0, 0, -1])
    assert odds_in_states(odds, model, np.array([True, True, True, False]))[3] == -1.0
