"""The application: the page, and the routes by which it asks."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import FastAPI, HTTPException, Response
from starlette.types import ASGIApp

from orienteer.dashboard.access import Guard
from orienteer.dashboard.access_log import AccessLog
from orienteer.dashboard.actions import action_routes
from orienteer.dashboard.answers import answer_errors
from orienteer.dashboard.campaign_view import campaign_routes
from orienteer.dashboard.frames import frame_routes
from orienteer.dashboard.live_view import live_routes
from orienteer.dashboard.results import result_routes
from orienteer.dashboard.runs import run_routes
from orienteer.dashboard.state import State
from orienteer.dashboard.watching import watch_routes

PAGE = Path(__file__).parent / "page"
_TYPES = {".html", ".js", ".css", ".svg", ".png", ".ico", ".woff2"}


def make_app(state: State, log: AccessLog) -> ASGIApp:
    """The whole of the dashboard behind its gate."""
    app = FastAPI(
        title="Orienteer", redirect_slashes=False, docs_url=None,
        redoc_url=None, openapi_url=None,
    )  # fmt: skip
    answer_errors(app, log)
    for routes in (
        run_routes, result_routes, frame_routes, live_routes, campaign_routes, action_routes, watch_routes,
    ):  # fmt: skip
        app.include_router(routes(state))
    _add_page(app)
    return Guard(app, state.gate, log)


def _add_page(app: FastAPI) -> None:
    """The files of the page by their names, which are read once: no path is made from a request."""
    files = {
        file.relative_to(PAGE).as_posix(): file
        for file in PAGE.rglob("*")
        if file.is_file() and file.suffix in _TYPES
    }

    @app.get("/")
    def page() -> Response:
        return _file(files, "index.html")

    @app.get("/static/{name:path}")
    def static(name: str) -> Response:
        return _file(files, name)


def _file(files: dict[str, Path], name: str) -> Response:
    found = files.get(name)
    if found is None:
        raise HTTPException(404, "There is no such file.")
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    return Response(found.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})
