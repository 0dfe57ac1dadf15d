"""Routes about single frames: a table of them, and the picture of one."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.dashboard.answers import PlainAnswer, bytes_answer
from orienteer.dashboard.cache import Stamp, stamp
from orienteer.dashboard.index import Entry
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.rows import LIVE, RUN, read_json
from orienteer.dashboard.runs import RunId
from orienteer.dashboard.state import State
from orienteer.errors import FileError
from orienteer.report.plain_values import as_words, at
from orienteer.run.directory import RunDirectory
from orienteer.run.files import ORIENTATIONS
from orienteer.source.base import Source

# Value of the picture where there is no usable pixel.
NOTHING = 65535
_MOST_OPEN = 4
_MOST_PIXELS = 1 << 24
# Event ids that are read in the first step of a search.
_FEWEST_IDS = 1024
EventId = Annotated[str, InPath(pattern=r"^[0-9]{1,20}$")]


@dataclass
class _Open:
    """An open source, and the ids (n,) of its last events, from frame ``first`` on.

    files : stamps of the data and of the files that describe them, from when they were opened.
    """

    source: Source
    files: tuple[Stamp, ...]
    ids: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    first: int = -1

    def place_of(self, event_id: int) -> int | None:
        """The number of the frame of an event, the last if there are several; None if there is none.

        The newest are searched first: pages show recent hits, and the ids of a long run are in many files.
        """
        if event_id >= 2**64:
            return None
        self.first = len(self.source) if self.first < 0 else self.first
        new = self.source.event_ids(slice(self.first + len(self.ids), len(self.source)))
        self.ids = np.concatenate([self.ids, new])
        while not len(found := np.flatnonzero(self.ids == np.uint64(event_id))):
            if self.first == 0:
                return None
            before = max(0, self.first - max(_FEWEST_IDS, len(self.ids)))
            self.ids = np.concatenate([self.source.event_ids(slice(before, self.first)), self.ids])
            self.first = before
        return self.first + int(found[-1])


class OpenSources:
    """The open data of a few runs; one reader at a time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._open: OrderedDict[Path, _Open] = OrderedDict()
        self._guard = threading.Lock()

    def columns(self, entry: Entry, first: int, n: int) -> tuple[int, dict[str, NDArray[Any]]]:
        """How many frames there are, and all columns of n of them."""
        with self._guard:
            source = self._source(entry).source
            rows = slice(first, min(first + n, len(source)))
            return len(source), {"event_id": source.event_ids(rows), **source.read_columns(None, rows)}

    def picture(self, entry: Entry, event_id: int) -> NDArray[np.uint16]:
        """Photons (ny, nx) of an event on its detector, ``NOTHING`` where there is no usable pixel."""
        with self._guard:
            found = self._source(entry)
            source, place = found.source, found.place_of(event_id)
            if place is None:
                raise Refused(404, f"There is no frame of event {event_id}.")
            if source.n_pixels > _MOST_PIXELS:
                raise Refused(422, f"Frames have {source.n_pixels:,} pixels, more than a page can show.")
            return _picture(to_numpy(source.read([place]).dense())[0], source)

    def _source(self, entry: Entry) -> _Open:
        data = self._data(entry)
        # A live run grows in the same files; other data are reopened if they or their description change.
        changing = () if data.is_dir() else (entry.path / RUN, data, RunDirectory(entry.path).detector)
        files = tuple(map(stamp, changing))
        found = self._open.pop(entry.path, None)
        if found is not None and found.files != files:
            found.source.close()
            found = None
        if found is None:
            found = _Open(self._opened(entry, data), files)
        else:
            found.source.refresh()
        self._open[entry.path] = found
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].source.close()
        return found

    def _data(self, entry: Entry) -> Path:
        """The path of the frames of a run, if it may be read."""
        if entry.is_live:
            return self._state.links.journal(entry.path)
        described = read_json(self._state.roots, entry.path / RUN)
        data = as_words(at(described, "input", "path"))
        if not data:
            raise Refused(404, "The data of this run did not come from a file.")
        try:
            # The data of a growing map are the hits of its live run, which are in a folder.
            is_live = (Path(data) / LIVE).is_file()
            return self._state.links.journal(Path(data)) if is_live else self._state.links.file(Path(data))
        except FileError as error:
            hint = "Start the dashboard with that folder, too."
            raise Refused(404, f"The data of this run are not served: {error.message}", hint) from error

    def _opened(self, entry: Entry, data: Path) -> Source:
        from orienteer.source.opening import open as open_source

        source = open_source(data)
        detector = None if entry.is_live else self._state.detector(entry)
        return source if detector is None else source.with_detector(detector)


def _picture(frame: NDArray[Any], source: Source) -> NDArray[np.uint16]:
    detector = source.detector
    values = np.clip(np.nan_to_num(frame.astype(np.float32), nan=0.0), 0, NOTHING - 1)
    mask = source.mask if detector is None else detector.mask
    if mask is not None:
        values = np.where(np.asarray(mask).reshape(-1) > 1, np.nan, values)
    if detector is not None:
        picture = detector.assemble(values)
    else:
        shape = source.frame_shape
        picture = values.reshape(-1, shape[-1])
    return np.where(np.isnan(picture), NOTHING, np.rint(np.nan_to_num(picture))).astype(np.uint16)


def frame_routes(state: State) -> APIRouter:
    """``frames`` and ``frame`` below ``/api/runs/{id}``."""
    routes = APIRouter(prefix="/api/runs/{run_id}")
    sources = OpenSources(state)

    @routes.get("/frames")
    def frames(
        run_id: RunId,
        first: Annotated[int, Query(ge=0, le=10**10)] = 0,
        n: Annotated[int, Query(ge=1, le=2000)] = 100,
    ) -> Response:
        entry = state.index.find(run_id)
        total, columns = (
            sources.columns(entry, first, n) if entry.is_live else _oriented(state, entry, first, n)
        )
        # As text, because numbers of JavaScript are exact only to 2^53.
        ids = [str(number) for number in columns.pop("event_id").tolist()]
        small = {name: column for name, column in columns.items() if column.ndim <= 2}
        return PlainAnswer({"total": total, "first": first, "event_id": ids, "columns": small})

    @routes.get("/frame/{event_id}")
    def frame(request: Request, run_id: RunId, event_id: EventId) -> Response:
        picture = sources.picture(state.index.find(run_id), int(event_id))
        shape = ",".join(map(str, picture.shape))
        content = picture.astype("<u2").tobytes()
        tag = hashlib.sha256(shape.encode() + content).hexdigest()[:32]
        return bytes_answer(request, content, tag, {"X-Shape": shape})

    return routes


def _oriented(state: State, entry: Entry, first: int, n: int) -> tuple[int, dict[str, NDArray[Any]]]:
    """Columns of some rows of ``orientations.h5``."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5

    file = entry.path / ORIENTATIONS
    if not file.exists():
        raise Refused(404, "Nothing is known of single frames before the first step.")
    with open_hdf5(state.links.file(file), "table of orientations") as opened:
        total = len(get_dataset(opened, "event_id", "u", (None,)))
        rows = slice(first, min(first + n, total))
        columns = {}
        for name in list(opened)[:64]:
            stored = get_dataset(opened, name, "biuf")
            if stored.ndim in (1, 2) and len(stored) == total and (stored.ndim == 1 or stored.shape[1] <= 16):
                columns[name] = np.asarray(stored[rows])
    return total, columns
