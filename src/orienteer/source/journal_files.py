"""The files of a live journal: numbered segments, each put in place whole and never changed.

``000000123.h5`` is one segment; ``000000064-000000127.h5`` holds several that were joined, row for row, and
replaces them.  During a join both exist for a moment; then the file with the longer range is used.

A file holds, next to the attributes ``format``, ``format_version`` and ``frame_shape``:

=====================================  ======================================================================
``shots/NAME`` (N, ...)                one row for each event that was received
``hits/shot`` (H,) int64               which of these rows are hits
``hits/end`` (H,) int64                end of each hit in the lists of photons
``hits/pixel``, ``hits/count`` (L,)    lit pixels and their photons, int32
``segments/number`` (S,) int64         the segments in this file
``segments/n_shots``, ``n_hits`` (S,)  rows of each of them
``state/NAME``                         what the worker needs to go on; joined files have none
``summary`` (1,) JSON                  counters, position of the source, rates and histograms so far
=====================================  ======================================================================
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_reading import (
    get_dataset,
    get_group,
    open_hdf5,
    read_array,
    read_numbers,
    read_text,
)
from orienteer.errors import FileError
from orienteer.source.hdf5_growing import read_column, read_metadata
from orienteer.source.sparse_photons import SparsePhotons

FORMAT_MARK = "orienteer journal"
FORMAT_VERSION = 1
JOURNAL = "journal"
_NAME = re.compile(r"(\d{9})(?:-(\d{9}))?\.h5")
# Errors that pass, so that the file may be read later: too many files are open, or the file server is away.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR)
# Listing a folder is not atomic: a file that is joined meanwhile may be missed until the next look.
_LOOKS, _PAUSE_S = 20, 0.02


@dataclass(frozen=True, order=True)
class SegmentRange:
    """Identifies a file of the journal by the segments that it holds, ``first`` to ``last``."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """The name of the file.

        >>> SegmentRange(7, 7).name, SegmentRange(0, 63).name
        ('000000007.h5', '000000000-000000063.h5')
        """
        return f"{self.first:09d}.h5" if self.first == self.last else f"{self.first:09d}-{self.last:09d}.h5"

    @classmethod
    def of(cls, name: str) -> SegmentRange | None:
        """The range that the name of a file states; None for other files."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        first = int(found[1])
        return cls(first, int(found[2] or first))


def list_ranges(journal: Path) -> list[SegmentRange]:
    """The files that make up the journal, in order and without a gap; empty if there is no journal."""
    for look in range(_LOOKS):
        chosen, missing = _cover(journal)
        if missing is None:
            return chosen
        if look + 1 < _LOOKS:
            time.sleep(_PAUSE_S)
    raise FileError(
        journal,
        f"lacks segment {missing}, although later ones are there.",
        "Put the file back; without it, the rows after it cannot be numbered.",
    )


def _cover(journal: Path) -> tuple[list[SegmentRange], int | None]:
    """The longest ranges that follow one another, and the first segment missing between them, if any."""
    try:
        names = os.listdir(journal)
    except FileNotFoundError:
        return [], None
    found = [each for name in names if (each := SegmentRange.of(name)) is not None]
    chosen: list[SegmentRange] = []
    following = 0
    for each in sorted(found, key=lambda each: (each.first, -each.last)):
        if each.last < following:
            continue
        if each.first != following:
            return chosen, following
        chosen.append(each)
        following = each.last + 1
    return chosen, None


@dataclass(frozen=True)
class SegmentIndex:
    """What a file of the journal holds, without its rows.

    number, n_shots, n_hits : (S,) int64, for each segment in the file.
    columns : the columns of its shots.
    """

    frame_shape: tuple[int, ...]
    number: NDArray[np.int64]
    n_shots: NDArray[np.int64]
    n_hits: NDArray[np.int64]
    columns: tuple[str, ...]


def shots_in(summary: Mapping[str, Any]) -> int:
    """Shots of the run up to here; the first live runs recorded them only by minute."""
    return int(summary["shots"]) if "shots" in summary else sum(map(int, summary["minutes"]["shots"]))


class UnknownVersion(FileError):  # noqa: N818 - nothing is wrong
    """A file that a later Orienteer has written."""


def is_damage(error: FileError) -> bool:
    """Whether the error means that the file is damaged, and not only that this process cannot read it."""
    cause = error.__cause__
    is_passing = isinstance(cause, OSError) and cause.errno in _PASSING
    is_whole = isinstance(error, UnknownVersion) or isinstance(cause, PermissionError | MemoryError)
    return not (is_whole or is_passing)


class SegmentFile:
    """One file of the journal, open for reading."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path, self._file = path, file
        version = int(read_numbers(file, "format_version", "iu"))
        if read_text(file, "format") != FORMAT_MARK:
            raise FileError(path, "is no segment of a live journal.")
        if version > FORMAT_VERSION:
            known = f"this Orienteer reads up to {FORMAT_VERSION}"
            raise UnknownVersion(path, f"has version {version}; {known}.", "Update Orienteer.")

    def index(self) -> SegmentIndex:
        """The index of this file; an error if its sums do not fit its tables."""
        segments, hits = get_group(self._file, "segments"), get_group(self._file, "hits")
        number, n_shots, n_hits = (
            read_array(get_dataset(segments, name, "i", (None,))) for name in ("number", "n_shots", "n_hits")
        )
        shots = get_group(self._file, "shots")
        ends = [int(n_shots.sum()), int(n_hits.sum())]
        found = [
            len(get_dataset(shots, "event_id", "u", (None,))),
            len(get_dataset(hits, "shot", "i", (None,))),
        ]
        if ends != found or min(len(number), len(n_shots), len(n_hits)) == 0:
            raise FileError(self.path, f"holds {found} shots and hits, but its segments announce {ends}.")
        shape = tuple(int(n) for n in read_numbers(self._file, "frame_shape", "iu", (None,)))
        return SegmentIndex(shape, number, n_shots, n_hits, tuple(shots))

    def column(self, name: str, rows: slice) -> NDArray[Any]:
        """Rows of a column of the shots."""
        return read_column(get_dataset(get_group(self._file, "shots"), name, "biufcS"), rows, False)

    def hit_rows(self, hits: slice) -> NDArray[np.int64]:
        """The rows of these hits in the table of shots."""
        return np.asarray(read_array(get_dataset(get_group(self._file, "hits"), "shot", "i", (None,)), hits))

    def photons(self, hits: slice, n_pixels: int) -> SparsePhotons:
        """The photons of these hits."""
        group = get_group(self._file, "hits")
        end = get_dataset(group, "end", "i", (None,))
        start = np.zeros(hits.stop - hits.start + 1, dtype=np.int64)
        start[1:] = read_array(end, hits)
        start[0] = end[hits.start - 1] if hits.start else 0
        pixel = get_dataset(group, "pixel", "i", (None,))
        if start[0] < 0 or start[-1] > len(pixel) or np.any(np.diff(start) < 0):
            raise FileError(self.path, f"has photon lists out of order in hits {hits.start} to {hits.stop}.")
        entries = slice(int(start[0]), int(start[-1]))
        count = read_array(get_dataset(group, "count", "i", (len(pixel),)), entries)
        return SparsePhotons(start - start[0], read_array(pixel, entries), count, n_pixels)

    def summary(self) -> dict[str, Any]:
        """Counters, position, rates and histograms up to its last segment."""
        return read_metadata(self._file, "summary")

    def sums(self) -> tuple[int, int]:
        """Shots and hits of the run up to its last segment."""
        told = self.summary()
        return shots_in(told), int(told["hits"])

    def state(self, part: str) -> dict[str, NDArray[Any]]:
        """A part of the worker's state by name; empty if the file has none."""
        state = self._file.get("state")
        group = state.get(part) if isinstance(state, h5py.Group) else None
        if not isinstance(group, h5py.Group):
            return {}
        return {name: read_array(get_dataset(group, name, "biufc")) for name in group}


@contextmanager
def open_segment(path: Path) -> Iterator[SegmentFile]:
    """A file of the journal, open inside the block; errors in reading become a FileError."""
    with open_hdf5(path, "segment of a live journal") as file:
        yield SegmentFile(path, file)
