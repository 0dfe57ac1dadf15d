"""What a live run has seen: rates by minute for ever, and by second for a minute."""

import numpy as np

from orienteer.live.summary import Summary

START_S = 1_700_000_000 - 1_700_000_000 % 60


def seen(times_s: list[float]) -> Summary:
    """A summary of one batch of ten shots at each time, two of them hits and one a single particle."""
    summary = Summary()
    for at_s in times_s:
        ids = np.arange(10, dtype=np.uint64)
        summary.add(ids, np.array([3, 7]), np.array([300.0, 300.0]), ["single", "junk"], at_s)
    return summary


def test_the_last_minute_is_kept_by_second_and_all_by_minute() -> None:
    told = seen([START_S + 0.5 * k for k in range(400)]).as_json()
    assert told["minutes"]["t_s"] == [START_S, START_S + 60, START_S + 120, START_S + 180]
    assert told["minutes"]["shots"] == [1200, 1200, 1200, 400]
    assert told["seconds"]["t_s"] == list(range(START_S + 140, START_S + 200))
    assert set(told["seconds"]["shots"]) == {20}
    assert set(told["seconds"]["hits"]) == {4}
    assert set(told["seconds"]["singles"]) == {2}


def test_seconds_without_shots_are_not_there_and_a_pause_takes_the_old_ones_away() -> None:
    assert seen([START_S, START_S + 5]).as_json()["seconds"]["t_s"] == [START_S, START_S + 5]
    assert seen([START_S, START_S + 500]).as_json()["seconds"]["t_s"] == [START_S + 500]


def test_a_clock_that_is_set_back_leaves_rates_in_order_and_those_of_now_right() -> None:
    times_s = [START_S + k for k in range(3600, 3605)] + [START_S + k for k in range(58, 66)]
    summary = seen(times_s)
    told = summary.as_json()
    assert told["minutes"]["t_s"] == [START_S, START_S + 60, START_S + 3600]
    assert told["minutes"]["shots"] == [20, 60, 50]
    assert told["seconds"]["t_s"] == list(range(START_S + 58, START_S + 66))
    for n, at_s in enumerate(times_s):
        summary.counters.received = 10 * n
        summary.note_commit(at_s, at_s)
    assert [each[0] for each in summary.as_json()["recent"]] == times_s[5:]


def test_rates_go_on_over_a_restart_also_from_before_there_were_seconds() -> None:
    told = seen([START_S]).as_json()
    assert Summary.from_json(told).as_json()["seconds"]["hits"] == [2]
    del told["seconds"]
    assert Summary.from_json(told).as_json()["seconds"]["t_s"] == []


def test_the_first_live_runs_have_told_their_shots_by_minute_only() -> None:
    told = seen([START_S, START_S + 90, START_S + 91]).as_json()
    del told["shots"]
    assert Summary.from_json(told).shots == 30
