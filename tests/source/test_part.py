"""Some frames of a data set: the same as those of the whole, however they are asked for."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.source.in_memory import InMemorySource
from orienteer.source.part import PartOfSource
from orienteer.source.patterns import Patterns

N = 60
PLACES = np.array([2, 3, 5, 20, 41, 42, 59])
CHOICES: dict[str, Any] = {
    "all": slice(None), "some": slice(2, 5), "every second": slice(None, None, 2), "none": slice(3, 3),
    "numbers": [4, 0, 4], "one": 6, "from the end": [-1, -7], "mask": PLACES > 30, "empty": [],
}  # fmt: skip


class Counting(InMemorySource):
    """A source that remembers how many ids and rows of columns were read."""

    n_read = 0

    def event_ids(self, frames: slice | ArrayLike = slice(None)) -> NDArray[np.uint64]:
        found = super().event_ids(frames)
        self.n_read = max(self.n_read, len(found))
        return found

    def read_columns(
        self, names: Collection[str] | None = None, frames: slice | ArrayLike = slice(None)
    ) -> dict[str, NDArray[Any]]:
        found = super().read_columns(names, frames)
        self.n_read = max([self.n_read, *map(len, found.values())])
        return found


@pytest.fixture
def whole() -> Counting:
    frames = np.random.default_rng(1).integers(0, 9, (N, 6))
    ids = np.arange(N, dtype=np.uint64) + np.uint64(2**63)
    return Counting(Patterns(frames, ids, {"fluence": np.arange(N) / 7}), (2, 3))


@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES.keys())
def test_frames_ids_and_columns_are_those_of_the_whole(whole: Counting, chosen: Any) -> None:
    part = PartOfSource(whole, PLACES, "part")
    is_empty = isinstance(chosen, list) and not chosen
    places = np.atleast_1d(PLACES[slice(0, 0) if is_empty else chosen])
    everything = whole.read()
    np.testing.assert_array_equal(part.event_ids(chosen), everything.event_id[places])
    fluence = part.read_columns(None, chosen)["fluence"]
    np.testing.assert_array_equal(fluence, everything.columns["fluence"][places])
    read = part.read(chosen)
    np.testing.assert_array_equal(read.dense(), everything.dense()[places])
    np.testing.assert_array_equal(read.event_id, everything.event_id[places])


def test_a_batch_reads_no_more_than_it_spans(whole: Counting) -> None:
    part = PartOfSource(whole, PLACES, "part")
    part.event_ids(slice(0, 3))
    part.read_columns(None, slice(0, 3))
    assert whole.n_read == 4


def test_a_frame_that_is_not_there_is_said(whole: Counting) -> None:
    with pytest.raises(OrienteerError, match="It has 7 frames"):
        PartOfSource(whole, PLACES, "part").read([7])
