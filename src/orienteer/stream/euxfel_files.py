"""Files of one run of the European XFEL: which trains they hold, and where the rows of a source are.

A file has the trains ``INDEX/trainId`` (T,), and for every source ``INDEX/<source>/first`` and ``count``,
(T,), which give the rows of each train in the data of the source.  Trains are spread over sequence files, and
sources over the files of several aggregators.  Two sources need not have the same trains in files of the same
number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from orienteer.compute.hdf5_file import open_hdf5_for_reading
from orienteer.compute.hdf5_filters import load_filters
from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_array
from orienteer.compute.reading import reading
from orienteer.errors import FileError, OrienteerError

_MOST_TRAINS, _MOST_OPEN = 1 << 24, 64


@dataclass
class Rows:
    """Where the data of a source lie, train by train in ascending order.

    train : (T,) uint64; file : (T,) number of the file; first, count : (T,) rows in it; time_s : (T,) seconds
    since 1970, NaN if the file does not say.
    """

    train: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    file: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    first: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    count: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    time_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))

    def joined(self, other: Rows) -> Rows:
        """Both, in the order of trains; if both have a train, the rows of ``self`` are kept."""
        train = np.concatenate([self.train, other.train])
        _, order = np.unique(train, return_index=True)
        both = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])[order]
            for name in ("file", "first", "count", "time_s")
        }
        return Rows(train[order], **both)

    def of(self, train: int) -> tuple[int, slice] | None:
        """The file and the rows of a train; None if the source has no rows for it."""
        at = int(np.searchsorted(self.train, np.uint64(train)))
        if at == len(self.train) or int(self.train[at]) != train or not self.count[at]:
            return None
        first = int(self.first[at])
        return int(self.file[at]), slice(first, first + int(self.count[at]))


class RunFiles:
    """The files of a run: ``sources`` has the rows of each source by name; ``look`` finds what is new."""

    def __init__(self, paths: Path | Iterable[Path]) -> None:
        self._folder = paths if isinstance(paths, Path) else None
        self._given = [] if isinstance(paths, Path) else [Path(path) for path in paths]
        self.paths: list[Path] = []
        self._marks: dict[Path, tuple[int, int]] = {}
        self.sources: dict[str, Rows] = {}
        self.skipped: dict[str, str] = {}
        self._open: dict[int, h5py.File] = {}
        self._datasets: dict[tuple[int, str], h5py.Dataset | None] = {}
        load_filters()

    def look(self) -> bool:
        """Read the index of files that are new, changed or unreadable so far; returns if there were any."""
        found = sorted(self._folder.glob("*.h5")) if self._folder is not None else self._given
        is_new = False
        for path in found:
            try:
                status = path.stat()
                mark = (status.st_size, status.st_mtime_ns)
                if self._marks.get(path) == mark:
                    continue
                is_known = path in self._marks
                number = self.paths.index(path) if is_known else len(self.paths)
                index = _read_index(path, number)
            except OSError:  # gone again
                continue
            except OrienteerError as error:
                self.skipped[path.name] = error.message
                continue
            self.skipped.pop(path.name, None)
            self._marks[path] = mark
            if is_known:
                self._close(number)  # the open file still has its old length
            else:
                self.paths.append(path)
            is_new = True
            for source, rows in index.items():
                self.sources[source] = self.sources.get(source, Rows()).joined(rows)
        return is_new

    def read(self, file: int, place: str, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
        """Rows of a dataset: a range, or row numbers in any order."""
        path = self.paths[file]
        span = rows if isinstance(rows, slice) else slice(int(rows.min()), int(rows.max()) + 1)
        with reading(path):
            dataset = self._dataset(file, place)
            if dataset is None or dataset.shape is None or len(dataset) < span.stop:
                raise FileError(path, f"does not have the {span.stop} rows of '{place}' that are indexed.")
            values = read_array(dataset, span)
        return values if isinstance(rows, slice) else values[rows - span.start]

    def shape(self, file: int, place: str) -> tuple[int, ...] | None:
        """The shape of a dataset; None if there is none at this place."""
        with reading(self.paths[file]):
            dataset = self._dataset(file, place)
        return None if dataset is None else tuple(dataset.shape)

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open, self._datasets = {}, {}

    def _close(self, file: int) -> None:
        """Close one file."""
        if file in self._open:
            self._open.pop(file).close()
        self._datasets = {key: dataset for key, dataset in self._datasets.items() if key[0] != file}

    def _dataset(self, file: int, place: str) -> h5py.Dataset | None:
        """A dataset of a file, which stays open because modules and trains are read in turns."""
        if file not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self.close()
            self._open[file] = open_hdf5_for_reading(self.paths[file])
        if (file, place) not in self._datasets:
            hdf5 = self._open[file]
            self._datasets[file, place] = (
                get_dataset(hdf5, place, "biuf", foreign=True) if place in hdf5 else None
            )
        return self._datasets[file, place]


def _read_index(path: Path, number: int) -> dict[str, Rows]:
    """The rows of each source in a file; a FileError if it is not a file of a run."""
    with open_hdf5(path, "file of a run") as hdf5:
        if "METADATA" not in hdf5 or "INDEX/trainId" not in hdf5:
            raise FileError(
                path,
                "has no METADATA and INDEX, as files of a run have.",
                "Give the folder of a run, such as .../proc/r0042.",
            )
        trains = get_dataset(hdf5, "INDEX/trainId", "iu", (None,))
        if len(trains) > _MOST_TRAINS:
            raise FileError(path, f"declares {len(trains)} trains.")
        train = read_array(trains).astype(np.uint64)
        time_s = np.full(len(train), np.nan)
        if "INDEX/timestamp" in hdf5:
            time_s = read_array(get_dataset(hdf5, "INDEX/timestamp", "iu", train.shape)) / 1e9
        names: list[str] = []
        group = hdf5["INDEX"]
        group.visititems(lambda name, item: names.append(name) if _has_rows(item) else None)
        index: dict[str, Rows] = {}
        for name in names:
            first = read_array(get_dataset(group[name], "first", "iu", train.shape)).astype(np.int64)
            count = _counts(group[name], first)
            if (first < 0).any() or (count < 0).any():
                raise FileError(path, f"has an index of '{name}' with negative rows or counts.")
            rows = Rows(train, np.full(len(train), number), first, count, time_s)
            # The data acquisition pads the end of the list of trains with zeros.
            index[name] = Rows().joined(_only(rows, (train > 0) & (count > 0)))
        return index


def _only(rows: Rows, kept: NDArray[np.bool_]) -> Rows:
    return Rows(rows.train[kept], rows.file[kept], rows.first[kept], rows.count[kept], rows.time_s[kept])


def _has_rows(item: Any) -> bool:
    return isinstance(item, h5py.Group) and "first" in item and ("count" in item or "last" in item)


def _counts(group: h5py.Group, first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each train; the oldest files have the last row instead, and a status of 0 for no rows."""
    if "count" in group:
        return read_array(get_dataset(group, "count", "iu", first.shape)).astype(np.int64)
    last = read_array(get_dataset(group, "last", "iu", first.shape)).astype(np.int64)
    status = read_array(get_dataset(group, "status", "iu", first.shape)) if "status" in group else 1
    return np.where(np.asarray(status) != 0, last - first + 1, 0)
