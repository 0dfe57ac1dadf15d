"""Pace: work that takes long is done seldom."""

from types import SimpleNamespace

import pytest

from orienteer.run import pace
from orienteer.run.pace import SHARE, Pace


def test_work_takes_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: now))
    work = Pace()
    n_times = 0
    for _ in range(10_000):
        now += 0.1
        if work.is_due:
            n_times += 1
            with work.measured():
                now += 2.0
    assert work.cost_s == pytest.approx(2.0)
    assert n_times * 2.0 / (now - 100.0) == pytest.approx(SHARE, rel=0.1)


def test_the_first_time_is_at_once_and_a_failure_does_not_count() -> None:
    work = Pace()
    assert work.is_due
    with pytest.raises(ZeroDivisionError), work.measured():
        raise ZeroDivisionError
    assert work.is_due
