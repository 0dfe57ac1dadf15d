"""Answers: JSON that every browser can read whatever files say, errors as sentences, and bytes."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from orienteer.compute.plain_json import plain
from orienteer.dashboard.access_log import AccessLog
from orienteer.dashboard.refusal import Refused
from orienteer.errors import OrienteerError


class PlainAnswer(JSONResponse):
    """JSON in ASCII, in which numbers that are not finite are null."""

    def render(self, content: Any) -> bytes:
        """The content as bytes."""
        try:
            return json.dumps(plain(content), allow_nan=False, separators=(",", ":")).encode("ascii")
        except RecursionError as error:
            raise OrienteerError("A file of this run is nested too deeply to be shown.") from error


def error_answer(status: int, message: str, hint: str = "") -> PlainAnswer:
    """What went wrong, in one sentence, and what to do next."""
    return PlainAnswer({"error": message, "hint": hint}, status)


def bytes_answer(request: Request, content: bytes, tag: str, headers: dict[str, str]) -> Response:
    """Binary data; a browser that has them already is told so.

    tag : differs when the content does.
    """
    facts = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == facts["ETag"]:
        return Response(status_code=304, headers=facts)
    return Response(content, media_type="application/octet-stream", headers={**facts, **headers})


def answer_errors(app: FastAPI, log: AccessLog) -> None:
    """Whatever is raised while a request is answered becomes a sentence; no traceback leaves the server.

    log : where paths are noted that lead nowhere; our own page asks for none.
    """

    @app.exception_handler(Refused)
    def refused(_: Request, error: Refused) -> Response:
        return error_answer(error.status, error.message, error.hint)

    @app.exception_handler(OrienteerError)
    def failed(_: Request, error: OrienteerError) -> Response:
        return error_answer(422, error.message, error.hint)

    @app.exception_handler(RequestValidationError)
    def not_understood(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first.get("loc", ("",))[0] == "path":
            log.note(request.scope, Refused(422, "This is no path."))
        where = ".".join(str(part) for part in first.get("loc", ())[1:]) or "the request"
        return error_answer(422, f"{where[:100]}: {first.get('msg', 'is not understood')}.")

    @app.exception_handler(HTTPException)
    def not_there(request: Request, error: HTTPException) -> Response:
        log.note(request.scope, Refused(error.status_code, str(error.detail)))
        return error_answer(error.status_code, str(error.detail))

    @app.exception_handler(Exception)
    def defect(_: Request, error: Exception) -> Response:
        return error_answer(
            500, f"Orienteer has a defect here ({type(error).__name__}).", "Please report it."
        )
