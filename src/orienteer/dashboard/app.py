"""The application: the page, and the routes from which it gets its data."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response
from starlette.types import ASGIApp

from orienteer.dashboard.access import Guard
from orienteer.dashboard.access_log import AccessLog
from orienteer.dashboard.actions import action_routes
from orienteer.dashboard.answers import answer_errors, bytes_answer
from orienteer.dashboard.cache import stamp
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
    """The whole dashboard, protected by its gate."""
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
    """Serve the files of the page by name; names are listed once, so that no path is made from a request."""
    files = {
        file.relative_to(PAGE).as_posix(): file
        for file in PAGE.rglob("*")
        if file.is_file() and file.suffix in _TYPES
    }

    # With this list the browser fetches all modules in parallel, instead of one after another as they import.
    modules = ", ".join(
        f"</static/{name}>; rel=modulepreload" for name in sorted(files) if name.endswith(".js")
    )

    @app.get("/")
    async def page(request: Request) -> Response:
        answer = _file(request, files, "index.html")
        answer.headers["Link"] = modules
        return answer

    @app.get("/static/{name:path}")
    async def static(request: Request, name: str) -> Response:
        return _file(request, files, name)


def _file(request: Request, files: dict[str, Path], name: str) -> Response:
    """A (small) file of the page; status 304 if the browser has it already."""
    found = files.get(name)
    if found is None:
        raise HTTPException(404, "There is no such file.")
    tag = "-".join(map(str, stamp(found) or ()))
    answer = bytes_answer(request, found.read_bytes(), tag, {})
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    answer.headers["Content-Type"] = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    return answer
