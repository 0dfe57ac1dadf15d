"""Access control for every request; it wraps the whole application, so that no route can forget it.

A request needs a name of this machine as ``Host`` (with DNS rebinding, another site's name points here), the
token, and, to change something, proof that it comes from our own page: pages of other sites can neither set
the header ``X-Orienteer`` nor hide their ``Origin``.  A refused request is logged, and nothing is served.
"""

from __future__ import annotations

import hashlib
import hmac
import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orienteer.dashboard.access_log import AccessLog
from orienteer.dashboard.answers import error_answer
from orienteer.dashboard.refusal import Refused

MOST_BODY_BYTES = 64 << 10
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_READING = ("GET", "HEAD")
_CHANGING = ("POST",)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_WHERE = "Open the address that orienteer serve has printed."
# After this redirection, the token is no longer in the address bar and the history of the browser.
_GO_ON = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Orienteer</title>'


@dataclass(frozen=True)
class Gate:
    """What a request must show to be answered.

    token : the secret; names : host names of this server; is_read_only : refuse all changes.
    """

    token: str
    names: frozenset[str] = frozenset(LOOPBACK)
    is_read_only: bool = False
    cookie: str = field(init=False)

    def __post_init__(self) -> None:
        # Browsers share cookies among the ports of a machine, so each server has its own cookie name.
        mark = hashlib.sha256(self.token.encode()).hexdigest()[:8]
        object.__setattr__(self, "cookie", f"orienteer_token_{mark}")

    def check(self, scope: Scope, headers: Headers) -> None:
        """Raise Refused for a request that is not allowed; ``Guard`` handles a token in the address."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or name_of_host(host) not in self.names:
            raise Refused(421, "This server does not answer to that host name.", _WHERE)
        is_socket = scope["type"] == "websocket"
        method = scope.get("method", "GET")
        if not is_socket and method not in _READING + _CHANGING:
            raise Refused(405, "Only GET and POST are answered.")
        if not self.knows_token(headers):
            raise Refused(401, "The token is missing or wrong.", _WHERE)
        if (is_socket or method in _CHANGING) and not is_same_origin(headers, host):
            raise Refused(403, "The request comes from another site.")
        if method in _CHANGING and not is_socket:
            if headers.get("x-orienteer") != "1":
                raise Refused(403, "A request that changes something needs the header X-Orienteer: 1.")
            if self.is_read_only:
                raise Refused(
                    403, "The dashboard is read-only.", "Start it without --read-only to change things."
                )

    def knows_token(self, headers: Headers) -> bool:
        """Whether a header or the cookie holds the token."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.is_token(given.strip())
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self.cookie)
        return found is not None and self.is_token(found.value)

    def is_token(self, given: str) -> bool:
        """Whether this is the token; the time taken does not reveal how much of it is right."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())


def name_of_host(host: str) -> str:
    """The name in a ``Host`` header, without port.

    >>> name_of_host("localhost:8765"), name_of_host("[::1]:80"), name_of_host("127.0.0.1.evil.org")
    ('localhost', '::1', '127.0.0.1.evil.org')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_same_origin(headers: Headers, host: str) -> bool:
    """Whether a request comes from a page of this server, or from no page at all."""
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    origins = headers.getlist("origin")
    return not origins or (len(origins) == 1 and origins[0] in (f"http://{host}", f"https://{host}"))


class Guard:
    """The application, protected by a gate."""

    def __init__(self, app: ASGIApp, gate: Gate, log: AccessLog) -> None:
        self._app, self._gate, self._log = app, gate, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            if (entering := self._enter(scope, headers)) is not None:
                await entering(scope, receive, _with_headers(send))
                return
            self._gate.check(scope, headers)
            if scope["type"] == "http":
                receive = _again(await _body(headers, receive), receive)
        except Refused as refusal:
            self._log.note(scope, refusal)
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            answer = _in_words(refusal) if scope["path"] == "/" else _as_json(refusal)
            await answer(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _enter(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to the address with the token, which moves it into a cookie; None for other requests."""
        if scope["type"] != "http" or scope["path"] != "/" or not scope["query_string"]:
            return None
        try:
            given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8).get("token", [])
        except ValueError:  # more than 8 fields
            return None
        if name_of_host(headers.get("host", "")) not in self._gate.names or len(given) != 1:
            return None
        if not self._gate.is_token(given[0]):
            return None
        # Browsers do not send a strict cookie along a redirection that began on another site.
        is_foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        answer: Response = HTMLResponse(_GO_ON) if is_foreign else RedirectResponse("/", 303)
        answer.set_cookie(self._gate.cookie, self._gate.token, httponly=True, samesite="strict", path="/")
        return answer


def _as_json(refusal: Refused) -> Response:
    return error_answer(refusal.status, refusal.message, refusal.hint)


def _in_words(refusal: Refused) -> Response:
    """A refusal as a page, for people who have opened the dashboard itself."""
    words = html.escape(f"{refusal.message} {refusal.hint}")
    return HTMLResponse(f"<!doctype html><title>Orienteer</title><p>{words}</p>", refusal.status)


async def _body(headers: Headers, receive: Receive) -> bytes:
    """The whole body if it is small; a larger one is refused as soon as that is known."""
    declared = headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit():
        raise Refused(400, "The length of the body is not a number.")
    body = b""
    is_large = len(declared) > 9 or int(declared) > MOST_BODY_BYTES
    while not is_large:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        is_large = len(body) > MOST_BODY_BYTES
        if not message.get("more_body", False):
            break
    if is_large:
        raise Refused(413, f"The body is larger than {MOST_BODY_BYTES:,} bytes.")
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that first gives the body that was read already, and then what follows it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _with_headers(send: Send) -> Send:
    """Add the headers by which a browser protects the page, unless the answer sets them itself."""

    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message.get("headers", [])}
            message["headers"] = [*message.get("headers", []), *_missing(HEADERS, there)]
        await send(message)

    return send_more


def _missing(wanted: Mapping[str, str], there: Iterable[Any]) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode(), value.encode())
        for name, value in wanted.items()
        if name.lower().encode() not in there
    ]
