"""The hits that are kept: all of them, or a sample that does not depend on the order in which they came."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.online import reservoir as reservoir_module
from orienteer.online.reservoir import Reservoir
from orienteer.source.patterns import concatenate


def filled(source: Any, blocks: list[int], capacity: int = 0) -> Reservoir:
    reservoir, first = Reservoir(source), 0
    reservoir.capacity = capacity
    for n in blocks:
        place = np.arange(first, first + n)
        reservoir.add(place, source.read(place))
        reservoir.trim()
        first += n
    return reservoir


def test_hits_are_given_back_as_they_came_however_they_were_asked_for(growing: Callable[..., Any]) -> None:
    source = growing(240)
    reservoir = filled(source, [100, 1, 1, 30, 60, 48])
    rows = np.random.default_rng(0).permutation(240)[:77]
    found, wanted = reservoir.patterns(rows), source.read(rows)
    assert np.array_equal(found.event_id, wanted.event_id)
    assert np.array_equal(found.dense(), wanted.dense())


def test_the_data_of_a_round_are_as_complete_as_the_source(growing: Callable[..., Any]) -> None:
    source = growing(240)
    part = filled(source, [240]).source(np.arange(5, 20))
    assert part.detector is not None
    assert part.polarisation == source.polarisation
    assert np.array_equal(part.read_columns(["wavelength_A"])["wavelength_A"], np.full(15, 2.5))


def test_beyond_its_capacity_the_sample_does_not_depend_on_the_order_of_arrival(
    growing: Callable[..., Any],
) -> None:
    order = np.random.default_rng(1).permutation(240)
    one, other = filled(growing(240), [80] * 3, 50), filled(growing(240, order), [40] * 6, 50)
    assert len(one) == len(other) == 50
    assert set(one.event_id.tolist()) == set(other.event_id.tolist())


def test_the_sample_is_fair_to_early_and_late_hits(growing: Callable[..., Any]) -> None:
    kept = filled(growing(240), [10] * 24, 120)
    early = (kept.place < 120).mean()
    assert 0.35 < early < 0.65


def test_what_is_known_of_a_hit_stays_with_it_when_others_are_given_up(growing: Callable[..., Any]) -> None:
    source = growing(240)
    reservoir = filled(source, [100])
    reservoir.note(np.arange(100), {"fluence": reservoir.event_id.astype(np.float64)}, 3)
    reservoir.capacity = 60
    reservoir.add(np.arange(100, 140), source.read(np.arange(100, 140)))
    reservoir.trim()
    old = reservoir.visited == 3
    assert 0 < old.sum() < 60
    assert np.array_equal(reservoir.columns["fluence"][old], reservoir.event_id[old].astype(np.float64))
    assert (reservoir.columns["fluence"][~old] == 1).all()


def test_a_restored_reservoir_is_the_same_and_reads_its_frames_again(growing: Callable[..., Any]) -> None:
    source = growing(240)
    first = filled(source, [100, 90], 120)
    first.note(np.arange(len(first)), {"weight": np.arange(len(first)) / 2}, 0)
    other = Reservoir(source)
    other.restore(first.state())
    rows = np.arange(len(first))
    assert np.array_equal(other.patterns(rows).dense(), first.patterns(rows).dense())
    assert np.array_equal(other.columns["weight"], first.columns["weight"])
    assert other.capacity == 120


def test_other_data_than_those_of_the_state_are_refused(growing: Callable[..., Any]) -> None:
    state = filled(growing(240), [100]).state()
    with pytest.raises(OrienteerError, match="not those with which this map was begun"):
        Reservoir(growing(240, np.arange(240)[::-1])).restore(state)


def test_hits_are_given_up_block_by_block(
    growing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a sample is taken, no more than one block is there twice."""
    monkeypatch.setattr(reservoir_module, "_LARGEST_BLOCK", 60)
    source = growing(240)
    held = Reservoir(source)
    for first in range(0, 240, 20):
        held.add(np.arange(first, first + 20), source.read(slice(first, first + 20)))
    assert max(map(len, held._blocks)) <= 60
    asked: list[int] = []
    monkeypatch.setattr(reservoir_module, "concatenate", lambda parts: _counted(asked, parts))
    held.leave_out(np.arange(0, 240, 3))
    assert max(asked, default=0) <= 60
    wanted = np.setdiff1d(np.arange(240), np.arange(0, 240, 3))
    assert np.array_equal(held.place, wanted)
    again = held.patterns(np.arange(len(wanted)))
    assert np.array_equal(again.dense(), source.read(wanted).dense())


def _counted(asked: list[int], parts: Any) -> Any:
    asked.append(sum(map(len, parts)))
    return concatenate(parts)
