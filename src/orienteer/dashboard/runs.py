"""Routes about runs: the list, one run, its steps and its volumes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from orienteer.dashboard.answers import PlainAnswer, bytes_answer
from orienteer.dashboard.cache import stamp
from orienteer.dashboard.index import Entry
from orienteer.dashboard.rows import LIVE, RUN, VALIDATION, read_json
from orienteer.dashboard.state import State
from orienteer.dashboard.volumes import Kind, file_of, read_small
from orienteer.errors import OrienteerError
from orienteer.phase.files import DENSITY_MRC
from orienteer.run.files import EVENTS, INTENSITY_H5, ORIENTATIONS, REPORT

RunId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
_SORTABLE = (
    "name", "kind", "status", "iteration", "resolution_A", "agrees_to_A", "n_frames", "hit_rate", "sample",
    "modified",
)  # fmt: skip


def run_routes(state: State) -> APIRouter:
    """The routes below ``/api/runs`` that only read."""
    routes = APIRouter(prefix="/api/runs")
    # Only a few volumes are read at a time, as each takes the memory of a whole volume.
    turns = threading.BoundedSemaphore(2)

    @routes.get("")
    def runs(
        search: Annotated[str, Query(max_length=200)] = "",
        tag: Annotated[str, Query(max_length=100)] = "",
        sample: Annotated[str, Query(max_length=200)] = "",
        kind: Annotated[str, Query(max_length=40)] = "",
        sort: Annotated[str, Query(max_length=40)] = "-modified",
        offset: Annotated[int, Query(ge=0, le=10**7)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        rows = state.rows()
        chosen = [row for row in rows if kind in ("", row["kind"]) and _fits(row, search, tag, sample)]
        told = {
            "total": len(chosen),
            "runs": in_order(chosen, sort)[offset : offset + limit],
            "trouble": state.book.trouble,
            "tags": sorted({one for row in rows for one in row["tags"]}),
            "samples": sorted({row["sample"] for row in rows} - {""}),
            "has_campaign": state.book.is_there,
            "is_read_only": state.gate.is_read_only,
        }
        return PlainAnswer(told)

    @routes.get("/{run_id}")
    def run(run_id: RunId) -> Response:
        if (row := state.elsewhere(run_id)) is not None:
            return PlainAnswer({**row, "has": {}, "is_read_only": state.gate.is_read_only})
        entry = state.index.find(run_id)
        described = _or_nothing(state, entry.path / (LIVE if entry.is_live else RUN))
        told = {
            **state.row(entry),
            "settings": state.settings(entry),
            "input": described.get("input") or described.get("source"),
            "versions": described.get("versions"),
            "machine": described.get("machine"),
            "created": described.get("created"),
            "seed": described.get("seed"),
            "n_models": _n_models(entry),
            "has": _has(entry),
            "notes": state.notes(entry),
            "excluded": state.excluded(entry),
            "frame_tags": state.frame_tags(entry),
            "map": state.index.id_of(entry.path / "map"),
            "is_read_only": state.gate.is_read_only,
        }
        return PlainAnswer(told)

    @routes.get("/{run_id}/steps")
    def steps(run_id: RunId, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> Response:
        return PlainAnswer(state.steps.columns(state.index.find(run_id).path / EVENTS, after))

    @routes.get("/{run_id}/volume")
    def volume(
        request: Request,
        run_id: RunId,
        kind: Kind = "intensity",
        model: Annotated[int, Query(ge=1, le=99)] = 1,
        size: Annotated[int, Query(ge=8, le=192)] = 64,
    ) -> Response:
        file = file_of(state.index.find(run_id).path, kind, model)

        def read() -> Any:
            with turns:
                return read_small(state.links, file, kind, model, size)

        found = state.volumes.get((file, kind, model, size), [file], read)
        tag = "-".join(map(str, (*(stamp(file) or ()), kind, model, size)))
        headers = {
            "X-Shape": ",".join(map(str, found.voxels.shape)),
            "X-Low": f"{found.low:.9g}",
            "X-High": f"{found.high:.9g}",
            "X-Scale": found.scale,
            "X-Voxel": f"{found.voxel:.9g}",
            "X-Unit": found.unit,
        }
        return bytes_answer(request, found.voxels.tobytes(), tag, headers)

    return routes


def in_order(rows: Iterable[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    """Rows sorted by a column, with "-column" the largest first; rows without a value always come last.

    >>> [row["n_frames"] for row in in_order([{"n_frames": n} for n in (1, None, 3)], "-n_frames")]
    [3, 1, None]
    """
    name = sort.removeprefix("-")
    name = name if name in _SORTABLE else "modified"
    rows = list(rows)
    known = [row for row in rows if row.get(name) not in (None, "")]
    known.sort(key=lambda row: _key(row[name]), reverse=sort.startswith("-"))
    return known + [row for row in rows if row.get(name) in (None, "")]


def _key(value: Any) -> tuple[int, Any]:
    return (1, value.casefold()) if isinstance(value, str) else (0, value)


def _fits(row: dict[str, Any], search: str, tag: str, sample: str) -> bool:
    """Whether a row has the tag and the sample, and contains every word of the search."""
    if (tag and tag not in row["tags"]) or (sample and sample != row["sample"]):
        return False
    parts = [row.get(name, "") for name in ("name", "campaign_run", "kind", "status", "sample", "note")]
    text = " ".join([*parts, *row["tags"], *row.get("frame_tags", ())]).casefold()
    return all(word in text for word in search.casefold().split())


def _or_nothing(state: State, path: FilePath) -> dict[str, Any]:
    """The contents of a description; empty if it is damaged, as the row of the run says so already."""
    try:
        return read_json(state.roots, path)
    except OrienteerError:
        return {}


def _n_models(entry: Entry) -> int:
    """The number of models of a run, counted by its maps."""
    number = 1
    while number < 99 and (entry.path / f"intensity_{number + 1}.mrc").exists():
        number += 1
    return number


def _has(entry: Entry) -> dict[str, bool]:
    """Which parts of a run can be shown."""
    path = entry.path
    logs = (EVENTS, "slurm", "dashboard.log")
    return {
        "steps": (path / EVENTS).exists() and not entry.is_live,
        "volume": (path / INTENSITY_H5).exists(),
        "density": (path / DENSITY_MRC).exists(),
        "density_loop": any((path / name).exists() for name in ("density_loop.mrc", "density_loop_1.mrc")),
        "fsc": (path / VALIDATION).exists() or ((path / EVENTS).exists() and not entry.is_live),
        "orientations": (path / ORIENTATIONS).exists(),
        "weather": (path / "events_rank_000.jsonl").exists(),
        "live": entry.is_live,
        "map": (path / "map" / RUN).exists(),
        "report": (path / REPORT).exists(),
        "log": any((path / name).exists() for name in logs),
    }
