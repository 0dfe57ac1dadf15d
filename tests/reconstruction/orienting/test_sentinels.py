"""Sentinels: looked at now and then, and always when a stage is over."""

from typing import Any

import numpy as np
import pytest

from orienteer.reconstruction.course.course import Course, Turn
from orienteer.reconstruction.orienting.sentinels import SentinelWatch, is_watched, watch_sentinels


def test_they_are_looked_at_every_fifth_iteration_and_at_the_end_of_a_stage() -> None:
    def watched(iteration: int, turn: Turn) -> bool:
        return is_watched(Course(2, 1, 400, iteration=iteration), turn)

    assert [i for i in range(1, 13) if watched(i, "go on")] == [1, 6, 11]
    turns: tuple[Turn, ...] = ("next stage", "next start", "best start", "end")
    assert all(watched(4, turn) for turn in turns)


def test_steps_between_tell_the_last_agreement(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "orienteer.reconstruction.course.turns.is_watched", lambda course, _: course.iteration in (1, 4)
    )
    emc = tiny.emc(symmetry="I", sentinels=0.3)
    told = [emc.step().sentinel_agreement_deg for _ in range(6)]
    assert told[0] is not None
    assert told == [told[0]] * 3 + [told[3]] * 3
    assert told[3] != told[0]


def test_a_gain_within_its_errors_is_none() -> None:
    assert SentinelWatch(3.0, 0.0, 0.0, 20).is_no_better
    assert SentinelWatch(3.0, 0.1, 0.06, 20).is_no_better
    assert not SentinelWatch(3.0, 0.1, 0.06, 20).is_worse
    assert SentinelWatch(3.0, -0.13, 0.06, 20).is_worse
    assert not SentinelWatch(3.0, 0.1, 0.04, 20).is_no_better
    assert not SentinelWatch(3.0, -1.0, 0.1, 5).is_no_better  # too few to tell


def test_a_sentinel_gains_what_its_evidence_is_above_that_of_a_round_object(tiny: Any) -> None:
    emc = tiny.emc(symmetry="I", sentinels=0.3)
    emc.models = emc.models * 0 + 1
    likelihood = emc.noise.likelihood(emc.work)
    watch = watch_sentinels(emc, likelihood, 0.7)
    assert abs(watch.gain_nats) < 1e-3


def test_without_halves_sentinels_have_poses_but_there_is_nothing_to_agree(tiny: Any) -> None:
    emc = tiny.emc(symmetry="I", halves=False, sentinels=0.3)
    step = emc.step()
    assert step.sentinel_agreement_deg is None
    assert step.sentinel_gain_nats is None
    assert step.half_correlation is step.agrees_to_A is None
    assert set(step.radial) == {"q_inv_A", "intensity"}  # a curve of 1 would tell of halves that agree
    found = emc.orientations()
    assert (found["confidence"][found["sentinel"]] > 0).all()
    assert len(np.unique(found["quaternion"][found["sentinel"]], axis=0)) > 1
    # One model that nothing filters has no say about whether the run goes on.
    assert not SentinelWatch(np.nan, -1.0, 0.1, 50).is_worse
    # And it goes on from a checkpoint.
    again = tiny.emc(symmetry="I", halves=False, sentinels=0.3)
    again.restore(emc.state())
    assert again.step().log_likelihood == emc.step().log_likelihood
