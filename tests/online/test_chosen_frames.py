"""Some frames of a source, read as a source of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from orienteer.online.chosen_frames import ChosenFrames


def test_chosen_frames_are_those_of_the_source(growing: Callable[..., Any]) -> None:
    source, places = growing(240), np.array([3, 4, 9, 70, 200, 11])
    chosen = ChosenFrames(source, places)
    wanted, found = source.read(places), chosen.read()
    assert len(chosen) == 6
    assert np.array_equal(chosen.event_ids(), wanted.event_id)
    assert np.array_equal(found.dense(), wanted.dense())
    assert np.array_equal(found.columns["truth_orientation"], wanted.columns["truth_orientation"])
    assert np.array_equal(chosen.read([5, 0]).event_id, wanted.event_id[[5, 0]])
    assert np.array_equal(np.concatenate([b.event_id for b in chosen.batches(4)]), wanted.event_id)
