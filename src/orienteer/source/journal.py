"""The journal of a live run: its hits as a source that grows, and its shots as columns.

A row of the table of shots keeps its number for ever, even if small files of the journal are joined into
larger ones.  The shots of a damaged file keep their rows, too, but only their fate is known.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.plain_json import read_described
from orienteer.compute.words import counted
from orienteer.detector.polarisation import check_polarisation
from orienteer.errors import FileError, OrienteerError
from orienteer.source.finite_source import FiniteSource, Result
from orienteer.source.journal_files import (
    JOURNAL,
    SegmentFile,
    SegmentIndex,
    SegmentRange,
    is_damage,
    list_ranges,
    open_segment,
)
from orienteer.source.sparse_photons import SparsePhotons, concatenate_photons

DESCRIPTION, DETECTOR = "live.json", "detector.h5"
FORMAT, VERSION = "orienteer-live", 1
EVENT_ID, FATE = "event_id", "fate"
# The fate of a shot whose file is damaged; ``Fate`` of ``live/worker.py`` has the others.
LOST = 3
_LAST = (
    "Run the command of the live run: it sets the file aside and receives its events again. If the stream "
    "is gone, move the file out of the journal."
)
_PHOTONS = (
    "Put a copy of it back; or empty it (truncate -s 0): then its shots count as lost, and all others are "
    "read."
)
# A file may be joined to others between being listed and being opened; its rows are then under a new name.
_ATTEMPTS = 5


@dataclass(frozen=True)
class Span:
    """A file of the journal and where its rows begin.

    lost_hits : hits that a damaged file had; None if the file is whole.
    """

    range: SegmentRange
    index: SegmentIndex
    first_shot: int
    first_hit: int
    lost_hits: int | None = None

    @property
    def n_shots(self) -> int:
        """Rows of its table of shots."""
        return int(self.index.n_shots.sum())

    @property
    def n_hits(self) -> int:
        """Hits among them that can be read."""
        return int(self.index.n_hits.sum())

    @property
    def sentence(self) -> str:
        """Says what is lost with a damaged file."""
        lost = f"{counted(self.n_shots, 'shot')}, {self.lost_hits or 0:,} of them hits, are lost"
        return f"{JOURNAL}/{self.range.name} is damaged: {lost}."


class JournalReader:
    """Reads the files of a journal as one table; ``refresh`` looks for new files."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.journal = Path(folder) / JOURNAL
        self.spans: list[Span] = []
        self._known: dict[SegmentRange, SegmentIndex] = {}

    def refresh(self) -> None:
        """Look for new segments.

        Known files are not opened again, except the last: a worker that finds it damaged replaces it.
        """
        for attempt in range(_ATTEMPTS):
            ranges = list_ranges(self.journal)
            try:
                self.spans = self._spans(ranges)
                break
            except FileError:
                if attempt + 1 == _ATTEMPTS or ranges == list_ranges(self.journal):
                    raise
        self._known = {span.range: span.index for span in self.spans[:-1] if span.lost_hits is None}

    def _spans(self, ranges: Sequence[SegmentRange]) -> list[Span]:
        """The files in order; the sums in the next whole file show how many rows damaged ones had.

        A damaged last file is an error: the worker sets it aside and receives its events again.
        """
        spans: list[Span] = []
        damaged: list[tuple[SegmentRange, FileError]] = []
        shot = hit = lost_hits = 0
        for each in ranges:
            try:
                index, sums = self._index_and_sums(each, with_sums=bool(damaged))
            except FileError as error:
                if not (self.journal / each.name).exists() or not is_damage(error):
                    raise
                damaged.append((each, error))
                continue
            for gap, _ in damaged:  # the first gets all their rows, the others get none
                n_shots, n_hits = max(0, sums[0] - shot), max(0, sums[1] - hit - lost_hits)
                nothing = np.zeros(1, np.int64)
                lost = SegmentIndex(index.frame_shape, nothing + gap.first, nothing + n_shots, nothing, ())
                spans.append(Span(gap, lost, shot, hit, n_hits))
                shot, lost_hits = shot + n_shots, lost_hits + n_hits
            damaged = []
            spans.append(Span(each, index, shot, hit))
            shot, hit = shot + spans[-1].n_shots, hit + spans[-1].n_hits
        if damaged:
            last = damaged[-1][1]
            raise FileError(last.path, last.reason, _LAST) from last
        return spans

    def _index_and_sums(self, each: SegmentRange, with_sums: bool) -> tuple[SegmentIndex, tuple[int, int]]:
        """The index of a file; ``with_sums`` also shots and hits of the run before it, else zeros."""
        known = self._known.get(each)
        if known is not None and not with_sums:
            return known, (0, 0)
        with open_segment(self.journal / each.name) as segment:
            index = segment.index()
            if not with_sums:
                return index, (0, 0)
            shots, hits = segment.sums()
            return index, (shots - int(index.n_shots.sum()), hits - int(index.n_hits.sum()))

    @property
    def damaged(self) -> tuple[Span, ...]:
        """Files that cannot be read any more."""
        return tuple(span for span in self.spans if span.lost_hits is not None)

    def retrying(self, read: Callable[[], Result]) -> Result:
        """The result of ``read``, which is called again if files were joined while it read."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return read()
            except FileError:
                ranges = [span.range for span in self.spans if span.lost_hits is None]
                self.refresh()
                if all((self.journal / each.name).exists() for each in ranges):
                    raise
        return read()

    @property
    def n_shots(self) -> int:
        """Rows of the table of shots."""
        return self.spans[-1].first_shot + self.spans[-1].n_shots if self.spans else 0

    @property
    def n_hits(self) -> int:
        """Hits there are now."""
        return self.spans[-1].first_hit + self.spans[-1].n_hits if self.spans else 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the shots that any file has."""
        return tuple(dict.fromkeys(name for span in self.spans for name in span.index.columns))

    def shots(self, names: Collection[str], rows: slice) -> dict[str, NDArray[Any]]:
        """Columns of these shots; values that were not recorded are NaN, 0 or False."""
        parts = []
        for span, inside in self._pieces(rows, lambda span: (span.first_shot, span.n_shots)):
            if span.lost_hits is not None:
                n = inside.stop - inside.start
                parts.append((n, {FATE: np.full(n, LOST, np.uint8), EVENT_ID: np.zeros(n, np.uint64)}))
                continue
            with open_segment(self.journal / span.range.name) as segment:
                parts.append(_columns(segment, span, names, inside))
        return join_columns(parts, names)

    def hits(self, names: Collection[str], hits: slice) -> dict[str, NDArray[Any]]:
        """Columns of these hits."""
        parts = []
        for span, inside in self._pieces(hits, lambda span: (span.first_hit, span.n_hits)):
            with open_segment(self.journal / span.range.name) as segment:
                rows = segment.hit_rows(inside)
                if not len(rows):
                    continue
                first = int(rows[0])
                _, columns = _columns(segment, span, names, slice(first, int(rows[-1]) + 1))
                parts.append((len(rows), {name: column[rows - first] for name, column in columns.items()}))
        return join_columns(parts, names)

    def photons(self, hits: slice, n_pixels: int) -> SparsePhotons:
        """The photons of these hits."""
        parts = [no_photons(n_pixels)]
        for span, inside in self._pieces(hits, lambda span: (span.first_hit, span.n_hits)):
            try:
                with open_segment(self.journal / span.range.name) as segment:
                    parts.append(segment.photons(inside, n_pixels))
            except FileError as error:
                if not is_damage(error):
                    raise
                # Damaged photons show only when they are read; by then the hits have their numbers.
                raise FileError(error.path, error.reason, _PHOTONS) from error
        return concatenate_photons(parts)

    def _pieces(self, rows: slice, extent: Callable[[Span], tuple[int, int]]) -> Iterator[tuple[Span, slice]]:
        """The files that hold these rows, each with the range of its own rows."""
        start = bisect_right(self.spans, rows.start, key=lambda span: extent(span)[0]) - 1
        for span in self.spans[max(0, start) :]:
            first, n = extent(span)
            if first >= rows.stop:
                return
            low, high = max(rows.start - first, 0), min(rows.stop - first, n)
            if low < high:
                yield span, slice(low, high)


def no_photons(n_pixels: int) -> SparsePhotons:
    """The photons of no frame."""
    return SparsePhotons(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), n_pixels)


def _columns(
    segment: SegmentFile, span: Span, names: Collection[str], rows: slice
) -> tuple[int, dict[str, NDArray[Any]]]:
    known = [name for name in names if name in span.index.columns]
    return rows.stop - rows.start, {name: segment.column(name, rows) for name in known}


def join_columns(
    parts: Sequence[tuple[int, dict[str, NDArray[Any]]]], names: Collection[str]
) -> dict[str, NDArray[Any]]:
    """The columns of all parts, joined; a part of n rows that lacks a column gets NaN, 0 or False."""
    joined = {}
    for name in names:
        like = next((columns[name] for _, columns in parts if name in columns), np.zeros(0))
        joined[name] = np.concatenate(
            [columns[name] if name in columns else blank_rows(like, n) for n, columns in parts] or [like[:0]]
        )
    joined.update({EVENT_ID: joined[EVENT_ID].astype(np.uint64)} if EVENT_ID in joined else {})
    return joined


def blank_rows(like: NDArray[Any], n: int) -> NDArray[Any]:
    """Rows (n, ...) for a column like this one that was not recorded: NaN, 0 or False."""
    return np.full((n, *like.shape[1:]), np.nan if like.dtype.kind == "f" else like.dtype.type(), like.dtype)


class JournalSource(FiniteSource):
    """The hits of a live run, during the run or after it; :meth:`refresh` looks for new ones.

    Columns are those of the table of shots: ``hit_score``, ``size_A``, ``kind`` and whatever else the stream
    gave for each event.

    folder : the folder of the live run.
    """

    format = "live"
    is_sparse = True
    # Most hits are single particles: reading the few others between them opens each file less often.
    frames_read_across = 16

    def __init__(self, folder: str | PathLike[str]) -> None:
        super().__init__()
        self.path = Path(folder)
        described = read_described(self.path / DESCRIPTION, "live run", FORMAT, VERSION)
        self._reader = JournalReader(self.path)
        self._told: set[SegmentRange] = set()
        self.metadata = {name: described[name] for name in ("run_id", "created") if name in described}
        if not described.get("frame_shape"):
            wait = "Wait until the source of the live run has answered for the first time."
            raise FileError(self.path, "has not received anything yet.", wait)
        self.frame_shape = tuple(int(n) for n in described["frame_shape"])
        if described.get("polarisation"):
            self.polarisation = check_polarisation(str(described["polarisation"]))
        from orienteer.detector.hdf5 import stored_detector

        self.attach(stored_detector(self.path / DETECTOR))
        self.refresh()

    def refresh(self) -> int:
        """Look for new hits; returns how many there are now."""
        self._reader.refresh()
        self.n_frames = self._reader.n_hits
        for span in self._reader.damaged:
            if span.range not in self._told:
                warnings.warn(f"{self.path}: {span.sentence}", stacklevel=2)
                self._told.add(span.range)
        self.stored_columns = tuple(name for name in self._reader.columns if name != EVENT_ID)
        return self.n_frames

    @property
    def n_lost(self) -> int:
        """Hits lost in damaged files of the journal."""
        return sum(span.lost_hits or 0 for span in self._reader.damaged)

    def _attempt(self, read: Callable[[], Result]) -> Result:
        return self._reader.retrying(read)

    def _read_frames(self, rows: slice) -> SparsePhotons:
        return self._reader.photons(rows, self.n_pixels)

    def _read_event_ids(self, rows: slice) -> NDArray[np.uint64]:
        return self._reader.hits([EVENT_ID], rows)[EVENT_ID]

    def _read_columns(self, names: Sequence[str], rows: slice) -> dict[str, NDArray[Any]]:
        return self._reader.hits(names, rows)


def read_shots(
    folder: str | PathLike[str], names: Collection[str] | None = None, first: int = 0
) -> dict[str, NDArray[Any]]:
    """Columns (n, ...) of the shots of a live run from number ``first`` on, by default all columns.

    Every event that was received has a row.  ``fate`` says whether it was processed (0), filtered (1),
    dropped (2) or lost in a damaged file (3; nothing else is known about it).
    """
    reader = JournalReader(folder)
    reader.refresh()
    known = reader.columns
    wanted = known if names is None else tuple(names)
    if known and (unknown := [name for name in wanted if name not in known]):
        raise OrienteerError(
            f"{folder}: shots have no column '{unknown[0]}'.", f"Columns: {', '.join(known)}."
        )
    return reader.retrying(lambda: reader.shots(wanted, slice(first, max(first, reader.n_shots))))


def is_live_run(folder: str | PathLike[str]) -> bool:
    """Whether a folder holds a live run."""
    return (Path(folder) / DESCRIPTION).is_file()
