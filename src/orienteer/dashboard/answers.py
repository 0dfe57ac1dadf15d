"""Answers: JSON that every browser can read, whatever the files hold; errors as sentences; and bytes."""

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
    """JSON in ASCII, with null for numbers that are not finite."""

    def render(self, content: Any) -> bytes:
        """The content as bytes."""
        try:
            return json.dumps(plain(content), allow_nan=False, separators=(",", ":")).encode("ascii")
        except RecursionError as error:
            raise OrienteerError("A file of this run is nested too deeply to be shown.") from error


def error_answer(status: int, message: str, hint: str = "") -> PlainAnswer:
    """An answer that says what went wrong and what to do next."""
    return PlainAnswer({"error": message, "hint": hint}, status)


def bytes_answer(request: Request, content: bytes, tag: str, headers: dict[str, str]) -> Response:
    """Binary data; status 304 without data if the browser has them already.

    tag : identifies the content: another content has another tag.
    """
    facts = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == facts["ETag"]:
        return Response(status_code=304, headers=facts)
    return Response(content, media_type="application/octet-stream", headers={**facts, **headers})


def answer_errors(app: FastAPI, log: AccessLog) -> None:
    """Turn every error during a request into a sentence; no traceback leaves the server.

    log : where requests for unknown paths are noted; our own page makes none.
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
            log.note(request.scope, Refused(422, "This is not a valid path."))
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
