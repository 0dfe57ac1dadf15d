"""Divide a data set into two halves, which no run sees together, and sentinels, which are in neither half.

A hash of the event id decides, so that a frame is in the same half in every run, on every machine and in any
order of the frames; two copies of a frame are in the same half.  It is not the hash by which a run divides
its own frames, to orient each half by the model of the other: those two halves share a start and affect each
other in every iteration, so their agreement does not exclude common noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.reconstruction.model.halves import hash_of_events
from orienteer.source.base import Source
from orienteer.source.part import PartOfSource

# The salts 0 and 1 are used to divide the frames of a run.
_SALT_OF_HALVES, _SALT_OF_SENTINELS = 2, 3
_PLACES = 1 << 20
SENTINEL = 2


def part_of_events(event_id: NDArray[np.uint64], sentinels: float = 0.0) -> NDArray[np.int64]:
    """0 or 1, the half of every event (N,), or 2 for sentinels, which are in neither.

    sentinels : share of the events that are in neither half.

    >>> part_of_events(np.array([0, 2, 3, 2], dtype=np.uint64)).tolist()
    [1, 0, 0, 0]
    """
    ids = np.asarray(event_id, dtype=np.uint64)
    half = (hash_of_events(ids, _SALT_OF_HALVES) >> np.uint64(40)).astype(np.int64) & 1
    place = hash_of_events(ids, _SALT_OF_SENTINELS) % np.uint64(_PLACES)
    return np.where(place < np.uint64(round(sentinels * _PLACES)), SENTINEL, half)


class Parts(NamedTuple):
    """A data set in three parts that share no frame."""

    half_1: PartOfSource
    half_2: PartOfSource
    sentinels: PartOfSource


def split(source: Source, sentinels: float = 0.05) -> Parts:
    """The two halves of a data set, and the sentinels.

    sentinels : share of the frames that are in neither half.
    """
    if source.n_frames is None:
        raise OrienteerError(
            "data without an end cannot be divided into halves.", "Write their frames to a file first."
        )
    part = part_of_events(source.event_ids(), sentinels)
    for number in range(2):
        if not (part == number).any():
            raise OrienteerError(
                f"{counted(len(part), 'frame')} cannot be divided into halves: one would be empty.",
                "Give more frames; a particle needs hundreds at least.",
            )
    names = ("half 1", "half 2", "sentinels")
    return Parts(*(PartOfSource(source, np.flatnonzero(part == i), name) for i, name in enumerate(names)))
