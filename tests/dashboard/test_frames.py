"""Frames of events are found wherever they are, and those of recent ones without reading all ids."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from orienteer.dashboard.frames import _Open
from orienteer.source.base import Source

N = 50_000


class Ids:
    """A source that has nothing but ids, every third number, and counts those that were read."""

    def __init__(self, n: int) -> None:
        self.n, self.n_read = n, 0

    def __len__(self) -> int:
        return self.n

    def event_ids(self, frames: slice) -> NDArray[np.uint64]:
        rows = np.arange(self.n)[frames]
        self.n_read += len(rows)
        return 3 * rows.astype(np.uint64)


def opened(ids: Any) -> _Open:
    return _Open(cast(Source, ids), ())


def test_the_frame_of_a_recent_event_is_found_without_reading_all_ids() -> None:
    ids = Ids(N)
    assert opened(ids).place_of(3 * (N - 40)) == N - 40
    assert ids.n_read < 0.1 * N


def test_every_event_is_found_and_no_id_is_read_twice() -> None:
    ids = Ids(N)
    data = opened(ids)
    for place in (N - 1, 0, N // 2, N - 2000):
        assert data.place_of(3 * place) == place
    assert ids.n_read == N
    assert data.place_of(1) is None
    assert data.place_of(2**64) is None


def test_events_that_came_since_are_found() -> None:
    ids = Ids(N)
    data = opened(ids)
    assert data.place_of(3 * N) is None
    ids.n += 7
    assert data.place_of(3 * N) == N
    assert ids.n_read == N + 7


def test_data_without_an_event_have_no_frame_of_any() -> None:
    assert opened(Ids(0)).place_of(0) is None
