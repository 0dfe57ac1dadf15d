"""Excluded events: the small file that lists them, and a data set without them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.compute.plain_json import read_described, write_json
from orienteer.compute.reading import COPY_AGAIN
from orienteer.errors import FileError, OrienteerError
from orienteer.source.base import Source
from orienteer.source.part import PartOfSource

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

EXCLUDED = "excluded.json"
FORMAT, VERSION = "orienteer-excluded", 1
_LARGEST = 2**64 - 1


def write_excluded(path: str | os.PathLike[str], event_ids: Iterable[int]) -> None:
    """Write the ids of the events, as texts because many programs handle whole numbers only up to 2^53."""
    texts = [str(number) for number in as_event_ids(event_ids).tolist()]
    told = {"format": FORMAT, "version": VERSION, "event_ids": texts}
    write_json(path, told)


def read_excluded(path: str | os.PathLike[str]) -> NDArray[np.uint64]:
    """The ids (n,) in such a file, sorted and without duplicates."""
    told: Any = read_described(Path(path), "list of excluded events", FORMAT, VERSION).get("event_ids")
    if not isinstance(told, list) or not all(isinstance(one, str) and is_event_id(one) for one in told):
        raise FileError(path, "does not hold a list of event ids.", COPY_AGAIN)
    return np.unique(np.array([int(one) for one in told], dtype=np.uint64))


class WithoutEvents(PartOfSource):
    """A data set without some of its events; it keeps the path of the whole data set.

    left_out : (n,) sorted ids of the events of the whole data set that are left out.
    """

    left_out: NDArray[np.uint64]

    @property
    def path(self) -> Path | None:
        """The file of the whole data set."""
        return self._whole.path

    def with_detector(self, detector: Detector) -> Self:
        """The same frames with this detector."""
        other = super().with_detector(detector)
        other.left_out = self.left_out
        return other


def without_events(source: Source, event_ids: ArrayLike) -> Source:
    """The data without these events; ids that do not occur in them are ignored."""
    ids = source.event_ids()
    is_out = np.isin(ids, np.asarray(event_ids, dtype=np.uint64))
    if not is_out.any():
        return source
    if is_out.all():
        raise OrienteerError("every frame is excluded.", "Take some back.")
    part = WithoutEvents(source, np.flatnonzero(~is_out), "without excluded events")
    part.left_out = np.unique(ids[is_out])
    return part


def as_event_ids(numbers: Iterable[int]) -> NDArray[np.uint64]:
    """Event ids (n,) as uint64, sorted and without duplicates; an error if one is no such number."""
    ids = list(numbers)
    for one in ids:
        if not isinstance(one, (int, np.integer)) or not 0 <= one <= _LARGEST:
            raise OrienteerError(
                f"{one!r} is not an event id.",
                "Give whole numbers from 0 to 2^64 - 1, as in the column event_id.",
            )
    return np.unique(np.array(ids, dtype=np.uint64))


def is_event_id(text: str) -> bool:
    """Whether a text is a whole number from 0 to 2^64 - 1.

    >>> is_event_id("18446744073709551615"), is_event_id("18446744073709551616"), is_event_id("-1")
    (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= _LARGEST
