"""To which half of the data a frame belongs, and which frames are sentinels: by a hash of the event id."""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError

_WATCHING = 1 << 20


def refuse_empty_parts(half: NDArray[np.int64], sentinel: NDArray[np.bool_], n_halves: int) -> None:
    """Refuse data if no frame of a half would be merged.

    half : (N,) of every frame; sentinel : (N,) whether it is never merged.
    """
    for number in range(n_halves):
        if not np.any((half == number) & ~sentinel):
            raise OrienteerError(
                f"{counted(len(half), 'frame')} cannot be split: a half would have no frame to merge.",
                "Give more frames; a reconstruction needs hundreds at least.",
            )


def hash_of_events(event_id: NDArray[np.uint64], salt: int = 0) -> NDArray[np.uint64]:
    """A well-mixed 64-bit number for every event (N,); the same in every run and on every machine."""
    x = event_id.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def half_of_events(event_id: NDArray[np.uint64]) -> NDArray[np.int64]:
    """0 or 1 for every event."""
    return (hash_of_events(event_id) >> np.uint64(40)).astype(np.int64) & 1


def sentinels_of_events(event_id: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Whether an event is a sentinel: it is oriented but never merged."""
    place = hash_of_events(event_id, salt=1) % np.uint64(_WATCHING)
    return np.asarray(place < np.uint64(round(share * _WATCHING)))
