"""Routes about the results of a run: agreement, viewing directions, work of the ranks, log and report."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from orienteer.dashboard.answers import PlainAnswer
from orienteer.dashboard.curves import agreement
from orienteer.dashboard.index import Entry
from orienteer.dashboard.logs import read_log
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import MOST_JSON_BYTES
from orienteer.dashboard.rows import VALIDATION, read_json
from orienteer.dashboard.runs import RunId
from orienteer.dashboard.state import State
from orienteer.orientation.point_group import PointGroup, as_point_group
from orienteer.phase.files import DESCRIPTION as PHASING
from orienteer.plot.coverage import bands_for, direction_density, viewing_directions
from orienteer.report.plain_values import as_words, at
from orienteer.run.files import EVENTS, ORIENTATIONS, REPORT

_MOST_REPORT_BYTES = 64 << 20
_MOST_DIRECTIONS, _MOST_ROWS = 1_000_000, 4_000_000
_MOST_LOG_BYTES = 256 << 20
_CELLS = 400
# A report has its own scripts and pictures; these headers keep them from reaching network and dashboard.
_REPORT_HEADERS = {
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; frame-ancestors 'self'"
    ),
}


def result_routes(state: State) -> APIRouter:
    """The routes below ``/api/runs/{id}`` about results."""
    routes = APIRouter(prefix="/api/runs/{run_id}")

    @routes.get("/fsc")
    def fsc(run_id: RunId) -> Response:
        path = state.index.find(run_id).path
        last = state.steps.columns(path / EVENTS, after=2**62)["last"]
        said = [read_json(state.roots, path / name) for name in (VALIDATION, PHASING)]
        return PlainAnswer(agreement(said[0], said[1], last))

    @routes.get("/coverage")
    def coverage(run_id: RunId) -> Response:
        entry = state.index.find(run_id)
        file = entry.path / ORIENTATIONS
        if not file.exists():
            raise Refused(404, "No frame has an orientation before the first step.")
        return PlainAnswer(state.facts.get(("coverage", file), [file], lambda: _coverage(state, entry)))

    @routes.get("/weather")
    def weather(run_id: RunId) -> Response:
        entry = state.index.find(run_id)
        logs = sorted(entry.path.glob("events_rank_*.jsonl"))
        if not logs:
            raise Refused(404, "The run has no log of its ranks.")
        told = state.facts.get(("weather", entry.path), logs, lambda: _weather(state, entry, logs))
        return PlainAnswer(told)

    @routes.get("/log")
    def log(
        run_id: RunId,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        file: Annotated[str, Query(max_length=100)] = "",
    ) -> Response:
        return PlainAnswer(read_log(state.roots, state.index.find(run_id).path, after, file))

    @routes.get("/report")
    def report(run_id: RunId) -> Response:
        file = state.index.find(run_id).path / REPORT
        if not file.exists():
            raise Refused(404, "There is no report yet.", "Write one: orienteer report RUN")
        content = state.roots.read(file, _MOST_REPORT_BYTES)
        return Response(content, media_type="text/html; charset=utf-8", headers=_REPORT_HEADERS)

    return routes


def _coverage(state: State, entry: Entry) -> dict[str, Any]:
    """Beam directions in the frame of the particle: an equal-area density map, relative to even coverage."""
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5

    file = state.links.file(entry.path / ORIENTATIONS)
    with open_hdf5(file, "table of orientations") as opened:
        stored = get_dataset(opened, "quaternion", "f", (None, 4))
        if len(stored) > _MOST_ROWS:
            raise Refused(422, f"There are {len(stored):,} orientations, more than a page can show.")
        quaternions = np.asarray(stored[:], np.float64)
    group = _symmetry(state, entry)
    step = -(-len(quaternions) * group.order // _MOST_DIRECTIONS)
    directions = viewing_directions(quaternions[:: max(1, step)], group)
    directions = directions[np.isfinite(directions).all(axis=1)]
    n_bands = bands_for(len(directions))
    density = direction_density(directions, n_bands) if len(directions) else np.zeros((n_bands, 2 * n_bands))
    return {
        "longitudes": 2 * n_bands,
        "latitudes": n_bands,
        "counts": np.round(density, 4).ravel().tolist(),
        "n_frames": len(quaternions),
    }


def _symmetry(state: State, entry: Entry) -> PointGroup:
    """The point group of the intensity, from the last step or the settings; C1 if neither names one."""
    last = state.steps.columns(entry.path / EVENTS, after=2**62)["last"]
    name = as_words(at(last or {}, "symmetry"))
    name = name or as_words(at(state.settings(entry), str(entry.row["kind"]), "symmetry"))
    try:
        return as_point_group(name or "C1")
    except Exception:  # not the name of a point group
        return as_point_group("C1")


def _weather(state: State, entry: Entry, logs: list[Any]) -> dict[str, Any]:
    from orienteer.scaling.findings import find, in_words
    from orienteer.scaling.weather import STAGES, Weather

    if sum(state.roots.file(log).stat().st_size for log in logs) > _MOST_LOG_BYTES:
        raise Refused(
            422, "The logs of the ranks are too long for a page.", "Draw them: orienteer weather RUN"
        )
    seen = Weather.read(entry.path)
    n_cells = min(_CELLS, max(20, MOST_JSON_BYTES // 16 // max(1, len(seen.ranks))))
    what, rate = seen.cells(n_cells)
    return {
        "ranks": [{"rank": rank.rank, "host": rank.host} for rank in seen.ranks],
        "t_s": ((np.arange(n_cells) + 0.5) * seen.seconds / n_cells).round(3).tolist(),
        "stage_names": list(STAGES),
        "what": what.tolist(),
        "rate": np.round(rate.astype(np.float64), 3).tolist(),
        "frames_per_s": np.round(seen.frames_per_second(n_cells), 3).tolist(),
        "iterations": {str(number): start for number, start in seen.iterations.items()},
        "findings": in_words(find(seen)),
    }
