"""Joining: merges old segments of a journal into larger files; a long shift would leave thousands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_writing import new_hdf5
from orienteer.errors import FileError
from orienteer.live.journal import begin_file
from orienteer.source.hdf5_growing import append_rows, create_column, create_rows, write_metadata
from orienteer.source.journal import EVENT_ID, blank_rows
from orienteer.source.journal_files import (
    JOURNAL,
    SegmentFile,
    SegmentIndex,
    SegmentRange,
    is_damage,
    list_ranges,
    open_segment,
)

TOGETHER = 64
KEEP = 8
_SEGMENTS = ("number", "n_shots", "n_hits")


class _NoLongerWanted(Exception):  # noqa: N818 - not an error
    """Raised inside a join to abandon it; everything is left as it was."""


def join_segments(
    folder: Path,
    together: int = TOGETHER,
    keep: int = KEEP,
    is_wanted: Callable[[], bool] = lambda: True,
) -> int:
    """Join old segments of a live run, ``together`` at a time; returns how many files were made.

    The joined file is in place before the small ones are removed, and readers take whichever they find.  A
    column that only some segments have (only those with hits have sizes) is filled with blanks for the
    others, as readers do anyway.  Segments are not joined if a column has different types in them, or if one
    of them is damaged.

    keep : how many of the last segments stay as they are: a worker continues from the last of them.
    is_wanted : asked between segments; once it is false, the join is abandoned.
    """
    journal = folder / JOURNAL
    ranges = list_ranges(journal)
    for left in journal.glob(".*-*.part"):  # of a join that was killed
        left.unlink(missing_ok=True)
    _remove_joined(journal, ranges)
    n_made = 0
    for first in range(0, ranges[-1].last + 1 - keep if ranges else 0, together):
        into = SegmentRange(first, first + together - 1)
        parts = [each for each in ranges if into.first <= each.first and each.last <= into.last]
        if len(parts) < 2 or into.last > ranges[-1].last - keep:
            continue
        try:
            tables = _tables_for(journal, parts)
            if tables is None:
                continue
            _join(journal, parts, into, tables, is_wanted)
        except _NoLongerWanted:
            break
        except FileError as error:
            if not is_damage(error):
                raise
            continue
        _remove_joined(journal, list_ranges(journal))
        n_made += 1
    return n_made


def _remove_joined(journal: Path, in_use: list[SegmentRange]) -> None:
    """Remove files whose rows another file holds as well; a killed join leaves such files."""
    if not journal.is_dir():  # nothing has come yet
        return
    for path in journal.iterdir():
        each = SegmentRange.of(path.name)
        if each is not None and each not in in_use and in_use and each.last <= in_use[-1].last:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Tables:
    """Layout of a joined file: the shape of its frames, and empty columns (0, ...) by name."""

    frame_shape: tuple[int, ...]
    columns: dict[str, NDArray[Any]]


def _tables_for(journal: Path, parts: list[SegmentRange]) -> _Tables | None:
    """The layout for the rows of all parts; None if a column has two types or frames have two shapes."""
    shapes = set()
    columns: dict[str, NDArray[Any]] = {}
    for part in parts:
        with open_segment(journal / part.name) as segment:
            index = segment.index()
            shapes.add(index.frame_shape)
            if not index.n_shots.sum():  # a segment that only records a stop has no columns
                continue
            for name in index.columns:
                column = segment.column(name, slice(0, 0))
                known = columns.setdefault(name, column)
                if (known.dtype, known.shape) != (column.dtype, column.shape):
                    return None
    return _Tables(shapes.pop(), columns or {EVENT_ID: np.zeros(0, np.uint64)}) if len(shapes) == 1 else None


def _join(
    journal: Path,
    parts: list[SegmentRange],
    into: SegmentRange,
    tables: _Tables,
    is_wanted: Callable[[], bool],
) -> None:
    with new_hdf5(journal / into.name, libver="latest") as file:
        made = _create(file, tables)
        for part in parts:
            if not is_wanted():
                raise _NoLongerWanted
            with open_segment(journal / part.name) as segment:
                _append(made, segment, segment.index(), tables)
                summary = segment.summary()
        write_metadata(file, "summary", summary)


def _create(file: h5py.File, tables: _Tables) -> dict[str, h5py.Dataset]:
    """Empty tables by name; they stay open while rows are added: closing one packs its last rows again."""
    begin_file(file, tables.frame_shape)
    shots, hits, segments = (file.create_group(name) for name in ("shots", "hits", "segments"))
    made = {f"shots/{name}": create_column(shots, name, column) for name, column in tables.columns.items()}
    for name, dtype in {"shot": np.int64, "end": np.int64, "pixel": np.int32, "count": np.int32}.items():
        made[f"hits/{name}"] = create_rows(hits, name, dtype)
    return made | {f"segments/{name}": create_rows(segments, name, np.int64) for name in _SEGMENTS}


def _append(
    made: dict[str, h5py.Dataset], segment: SegmentFile, index: SegmentIndex, tables: _Tables
) -> None:
    """Append the rows of a segment."""
    for name in _SEGMENTS:
        append_rows(made[f"segments/{name}"], getattr(index, name))
    n_shots, n_hits = int(index.n_shots.sum()), int(index.n_hits.sum())
    if not n_shots:
        return
    photons = segment.photons(slice(0, n_hits), int(np.prod(index.frame_shape)))
    append_rows(made["hits/shot"], segment.hit_rows(slice(0, n_hits)) + len(made["shots/event_id"]))
    append_rows(made["hits/end"], photons.start[1:] + len(made["hits/pixel"]))
    append_rows(made["hits/pixel"], photons.pixel)
    append_rows(made["hits/count"], photons.count)
    for name, column in tables.columns.items():
        has_it = name in index.columns
        rows = segment.column(name, slice(0, n_shots)) if has_it else blank_rows(column, n_shots)
        append_rows(made[f"shots/{name}"], rows)
