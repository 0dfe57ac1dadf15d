"""Events: small data are there, frames are read only when asked for."""

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.stream.events import Events, events_of


def counting() -> tuple[Events, list[list[int]]]:
    """Events that note which rows were read."""
    read: list[list[int]] = []
    all_frames = Patterns(np.arange(12).reshape(6, 2), np.arange(10, 16), {"energy": np.arange(6.0)})

    def frames(rows: object) -> Patterns:
        read.append(np.arange(6)[rows].tolist())
        return all_frames[rows]

    return Events(all_frames.event_id, all_frames.columns, {"at": 6}, frames, 2, 1), read


def test_nothing_is_read_before_it_is_asked_for() -> None:
    events, read = counting()
    assert len(events) == 6
    chosen = events.take(events.columns["energy"] > 2).take(np.array([2, 0]))
    assert chosen.event_id.tolist() == [15, 13]
    assert not read
    assert chosen.patterns().frames.tolist() == [[10, 11], [6, 7]]
    assert read == [[5, 3]]


def test_a_choice_keeps_position_and_counts() -> None:
    events, _ = counting()
    chosen = events.take(np.zeros(6, bool))
    assert (len(chosen), chosen.position, chosen.n_dropped, chosen.n_filtered) == (0, {"at": 6}, 2, 1)


def test_masks_indices_and_slices_choose_alike() -> None:
    events, _ = counting()
    expected = [[2, 3], [4, 5]]
    for chosen in (slice(1, 3), np.array([1, 2]), np.array([False, True, True, False, False, False])):
        assert events.patterns(chosen).frames.tolist() == expected


def test_columns_have_a_row_for_each_event() -> None:
    with pytest.raises(OrienteerError, match="for 2 events"):
        Events(np.arange(2, dtype=np.uint64), {"energy": np.zeros(3)}, {}, lambda rows: None)
    patterns = Patterns(np.ones((3, 4)))
    assert len(events_of(patterns, {}).patterns()) == 3
