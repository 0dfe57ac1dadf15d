"""Routes about a live run: counters, rates, sizes and powder pictures."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response

from orienteer.dashboard.answers import PlainAnswer, bytes_answer
from orienteer.dashboard.cache import FileCache, stamp
from orienteer.dashboard.index import Entry
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.runs import RunId
from orienteer.dashboard.state import State
from orienteer.live.summary import live_summary


def live_routes(state: State) -> APIRouter:
    """The routes below ``/api/live``."""
    routes = APIRouter(prefix="/api/live/{run_id}")
    powders = FileCache(4)  # each is as large as a few frames

    def summary(entry: Entry, with_powder: bool) -> dict[str, Any]:
        if not entry.is_live:
            raise Refused(404, "This is not a live run.")
        if not with_powder:  # not cached: it is small, and current rates change without new files
            return live_summary(state.links.journal(entry.path), with_powder=False)
        files = [entry.path / "journal"]
        return powders.get(
            ("powder", entry.path), files, lambda: live_summary(state.links.journal(entry.path))
        )

    @routes.get("")
    def live(run_id: RunId) -> Response:
        entry = state.index.find(run_id)
        told = dict(summary(entry, with_powder=False))
        del told["powder"]
        told["recent_hits"] = [str(number) for number in reversed(told["recent_hits"])]
        return PlainAnswer({**told, "status": entry.row["status"], "words": entry.row["words"]})

    @routes.get("/powder")
    def powder(request: Request, run_id: RunId, of: Literal["hits", "background"] = "hits") -> Response:
        entry = state.index.find(run_id)
        told = summary(entry, with_powder=True)
        if of not in told["powder"]:
            raise Refused(404, f"There is no powder of {of} yet.")
        values = np.asarray(told["powder"][of], np.float32).reshape(-1)
        picture = _assembled(state, entry, values, tuple(told["frame_shape"]))
        shape = ",".join(map(str, picture.shape))
        tag = "-".join(map(str, (run_id, of, *(stamp(entry.path / "journal") or ()))))
        return bytes_answer(request, picture.astype("<f4").tobytes(), tag, {"X-Shape": shape})

    return routes


def _assembled(state: State, entry: Entry, values: Any, frame_shape: tuple[int, ...]) -> Any:
    """The picture (ny, nx) of values (P,); NaN where there is no usable pixel."""
    detector = state.detector(entry)
    if detector is None:
        return values.reshape(-1, frame_shape[-1])
    return detector.assemble(np.where(detector.mask.reshape(-1) > 1, np.nan, values))
