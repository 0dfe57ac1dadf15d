"""Hits are taken once each, in order, if the choice lets them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.online.arrivals import Arrivals
from orienteer.source.patterns import concatenate


def test_every_hit_is_taken_once_and_in_order(growing: Callable[..., Any]) -> None:
    source = growing(50)
    arrivals, ids = Arrivals(source), []
    for n in (0, 30, 0, 70, 90):
        source.arrive(n)
        arrivals.look()
        while arrivals.n_waiting:
            ids.append(arrivals.take(40)[1].event_id)
    assert np.array_equal(np.concatenate(ids), source.event_ids())
    assert np.array_equal(arrivals.chosen, np.arange(240))


def test_a_choice_leaves_out_hits_by_their_columns(growing: Callable[..., Any]) -> None:
    source = growing(100)
    arrivals = Arrivals(source, lambda columns: np.arange(len(columns["wavelength_A"])) % 3 == 0)
    place, patterns = arrivals.take(100)
    assert np.array_equal(place, np.arange(0, 100, 3))
    assert np.array_equal(patterns.event_id, source.event_ids(place))
    assert arrivals.n_waiting == 0


def test_a_choice_that_is_no_mask_is_refused(growing: Callable[..., Any]) -> None:
    with pytest.raises(OrienteerError, match="one True or False for each"):
        Arrivals(growing(10), lambda _: np.ones(3)).take(10)


def test_a_hit_that_comes_twice_counts_once(frames: Any, growing: Callable[..., Any]) -> None:
    doubled = concatenate([frames.read(slice(0, 20)), frames.read(slice(5, 12)), frames.read(slice(20, 30))])
    arrivals = Arrivals(growing(37, patterns=doubled))
    taken = np.concatenate([arrivals.take(11)[0] for _ in range(4)])
    assert len(taken) == 30
    assert arrivals.n_doubles == 7


def test_after_a_restart_known_hits_are_known(frames: Any, growing: Callable[..., Any]) -> None:
    doubled = concatenate([frames.read(slice(0, 20)), frames.read(slice(0, 20)), frames.read(slice(20, 30))])
    arrivals = Arrivals(growing(50, patterns=doubled))
    arrivals.take(25)
    again = Arrivals(growing(50, patterns=doubled))
    again.restore(arrivals.state())
    again.take(100)
    assert np.array_equal(again.chosen, [*range(20), *range(40, 50)])


def test_a_source_that_has_become_shorter_is_refused(growing: Callable[..., Any]) -> None:
    arrivals = Arrivals(growing(100))
    arrivals.take(100)
    with pytest.raises(OrienteerError, match="the data have 60 hits, and 100 were seen before"):
        Arrivals(growing(60)).restore(arrivals.state())


def test_excluded_hits_are_left_out_and_come_back_when_they_are_not_any_more(
    growing: Callable[..., Any],
) -> None:
    source = growing(100)
    ids, arrivals = source.event_ids(), Arrivals(source)
    arrivals.take(60)
    gone, back = arrivals.exclude(ids[[5, 50, 70]])
    assert (gone.tolist(), back.tolist()) == ([5, 50], [])
    place, patterns = arrivals.take(40)
    assert 70 not in place
    assert patterns is not None
    assert np.array_equal(patterns.event_id, ids[place])
    assert arrivals.left_out.tolist() == [5, 50, 70]
    again = Arrivals(source)
    again.restore(arrivals.state())
    gone, back = again.exclude(ids[[50]])
    assert (gone.tolist(), back.tolist()) == ([], [5, 70])
    assert again.chosen.tolist() == [row for row in range(100) if row != 50]


def test_an_excluded_hit_that_comes_again_stays_out(frames: Any, growing: Callable[..., Any]) -> None:
    doubled = concatenate([frames.read(slice(0, 20)), frames.read(slice(0, 20))])
    source = growing(40, patterns=doubled)
    arrivals = Arrivals(source)
    arrivals.exclude(source.event_ids([3]))
    arrivals.take(40)
    assert arrivals.chosen.tolist() == [row for row in range(20) if row != 3]
    arrivals.exclude(np.zeros(0, np.uint64))
    assert arrivals.chosen.tolist() == list(range(20))


def test_a_state_from_before_hits_could_be_excluded_is_gone_on_from(growing: Callable[..., Any]) -> None:
    arrivals = Arrivals(growing(100))
    arrivals.take(60)
    old = {name: value for name, value in arrivals.state().items() if name != "arrivals/left_out"}
    later = Arrivals(growing(100))
    later.restore(old)
    assert (len(later.chosen), len(later.left_out)) == (60, 0)


def test_of_a_known_event_nothing_but_its_name_is_remembered(growing: Callable[..., Any]) -> None:
    """A beam time has millions of hits, and a map that lasts as long must not fill memory with them."""
    arrivals = Arrivals(growing(240))
    for _ in range(6):
        arrivals.take(40)
    kept = sum(array.nbytes for array in vars(arrivals).values() if isinstance(array, np.ndarray))
    assert kept == 240 * (8 + 8)  # its row, and its event
    assert not any(isinstance(value, set | dict | list) for value in vars(arrivals).values())
