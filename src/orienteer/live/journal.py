"""Journal: everything that a live run has received, in segments that are each committed atomically.

A segment holds the table of its shots, the photons of its hits, and what the worker needs to continue right
after it: counters, the position of the source, the state of hit finding.  Renaming the file is the commit:
a worker that is killed at any instant continues from the last segment, and no event is lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.atomic import unwritable
from orienteer.compute.hdf5_writing import new_hdf5
from orienteer.errors import FileError
from orienteer.source.hdf5_growing import PACKED, append_rows, create_column, write_metadata
from orienteer.source.journal import JournalReader, JournalSource, read_shots
from orienteer.source.journal_files import (
    FORMAT_MARK,
    FORMAT_VERSION,
    JOURNAL,
    SegmentRange,
    is_damage,
    list_ranges,
    open_segment,
)
from orienteer.source.sparse_photons import SparsePhotons

__all__ = ["Journal", "JournalReader", "JournalSource", "Restored", "Segment", "read_shots"]

State = Mapping[str, Mapping[str, NDArray[Any]]]
_CHUNK_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Segment:
    """The contents of one atomic commit.

    shots : columns (N, ...), ``event_id`` among them; one row for each event.
    hit_rows : (H,) rows of ``shots`` that are hits, ascending; photons : the photons of these hits.
    summary : JSON that covers the whole run so far: ``counters``, ``position`` and what pages show.
    state : arrays by part and name.
    """

    frame_shape: tuple[int, ...]
    shots: Mapping[str, NDArray[Any]]
    hit_rows: NDArray[np.int64]
    photons: SparsePhotons
    summary: Mapping[str, Any]
    state: State = field(default_factory=dict)


@dataclass(frozen=True)
class Restored:
    """What a worker continues from: the last intact segment.

    set_aside : damaged files after that segment, by their new names.
    """

    number: int
    summary: dict[str, Any]
    state: dict[str, dict[str, NDArray[Any]]]
    set_aside: tuple[Path, ...] = ()


class Journal:
    """The journal for its only writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / JOURNAL
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in self.folder.glob(f".{'?' * 9}.h5.*.part"):  # of a killed worker
                left.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        self._following = max((each.last + 1 for each in list_ranges(self.folder)), default=0)

    @property
    def n_segments(self) -> int:
        """Segments that are in place."""
        return self._following

    def restore(self, parts: tuple[str, ...]) -> Restored | None:
        """The summary of the last intact segment and these parts of its state; None if there is no segment.

        A damaged last segment (of a failing disk, say) is renamed: its events are received again.
        """
        aside: list[Path] = []
        for each in reversed(list_ranges(self.folder)):
            path = self.folder / each.name
            try:
                with open_segment(path) as segment:
                    segment.index()
                    state = {part: segment.state(part) for part in parts}
                    return Restored(each.last, segment.summary(), state, tuple(aside))
            except FileError as error:
                if each.first != each.last or not is_damage(error):
                    raise
                aside.append(path.rename(path.with_name(f"damaged-{each.name}")))
                self._following = each.first
        return None

    def commit(self, segment: Segment) -> int:
        """Put a segment in place; returns its number."""
        number = self._following
        n_shots, n_hits = len(segment.shots["event_id"]), len(segment.hit_rows)
        with new_hdf5(self.folder / SegmentRange(number, number).name, libver="latest") as file:
            begin_file(file, segment.frame_shape)
            shots = file.create_group("shots")
            for name, column in segment.shots.items():
                create_column(shots, name, column, max(1, n_shots))
                append_rows(shots[name], column)
            photons = segment.photons
            for name, values in {
                "shot": segment.hit_rows.astype(np.int64),
                "end": photons.start[1:],
                "pixel": photons.pixel,
                "count": photons.count,
            }.items():
                _write(file, f"hits/{name}", values)
            for name, value in {"number": number, "n_shots": n_shots, "n_hits": n_hits}.items():
                file[f"segments/{name}"] = np.array([value], dtype=np.int64)
            for part, arrays in segment.state.items():
                for name, values in arrays.items():
                    _write(file, f"state/{part}/{name}", values)
            write_metadata(file, "summary", segment.summary)
        self._following += 1
        return number


def begin_file(file: h5py.File, frame_shape: tuple[int, ...]) -> None:
    """Write format, version and frame shape as attributes of a new file."""
    file.attrs["format"] = np.bytes_(FORMAT_MARK)
    file.attrs["format_version"] = FORMAT_VERSION
    file.attrs["frame_shape"] = np.array(frame_shape, dtype=np.int64)


def _write(file: h5py.File, name: str, values: NDArray[Any]) -> None:
    values = np.asarray(values)
    if values.ndim == 0 or values.size == 0:
        file[name] = values
        return
    chunks = (min(len(values), max(1, _CHUNK_ENTRIES // max(1, values[0].size))), *values.shape[1:])
    file.create_dataset(name, data=values, chunks=chunks, **PACKED)
