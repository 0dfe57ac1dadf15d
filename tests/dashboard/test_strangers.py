"""Bytes, paths, headers and bodies of any kind: the dashboard refuses them in words and stays as it was."""

import json
from types import SimpleNamespace
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FUZZ = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=60)


@FUZZ
@given(path=st.binary(max_size=80), query=st.binary(max_size=40), body=st.binary(max_size=80), method=TEXT)
def test_bytes_of_any_kind_are_answered_without_serving_anything(
    client: httpx.Client, made_up: SimpleNamespace, path: bytes, query: bytes, body: bytes, method: str
) -> None:
    """Without a token nothing is served, whatever the bytes are; the server stays as it was."""
    request = b"%s /%s?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n%s" % (
        method.encode("latin-1"), path, query, body,
    )  # fmt: skip
    status = made_up.ask(int(client.base_url.port or 0), request, is_whole=False).split(b" ")[1:2]
    assert status in ([], [b"400"], [b"401"], [b"405"], [b"413"], [b"421"], [b"422"])
    assert client.get("/api/runs").json()["total"] == 1


PARTS = st.sampled_from([
    "..", "%2e%2e", "%2E.", "%252e%252e", "..%2f", "%2f", "\\..", "..;", "etc", "passwd", "api", "runs", "~",
    "0123456789abcdef", "volume", "frame", "%00", "run.json", "virus", "index.html", "//", "C:", "static",
])  # fmt: skip


@FUZZ
@given(parts=st.lists(PARTS, max_size=8), root=st.sampled_from(["/", "/static/", "/api/runs/", "/api/live/"]))
def test_no_path_leads_out_of_the_page_and_the_roots(
    client: httpx.Client, made_up: SimpleNamespace, parts: list[str], root: str
) -> None:
    request = (
        f"GET {root}{'/'.join(parts)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: Bearer {made_up.token}\r\n\r\n"
    )
    head, _, body = made_up.ask(int(client.base_url.port or 0), request.encode()).partition(b"\r\n\r\n")
    assert b"root:" not in body
    assert b"orienteer-run" not in body
    assert head.split(b" ")[1] in (b"200", b"400", b"404", b"405", b"422")
    if head.split(b" ")[1] == b"200":
        assert b"text/html" in head or body.startswith(b'{"total"') or b"javascript" in head


HEADER = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=20
)
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=80)
NAMES = (
    "Cookie",
    "Origin",
    "Authorization",
    "Content-Type",
    "If-None-Match",
    "Range",
    "X-Orienteer",
    "Accept",
)


@FUZZ
@given(
    headers=st.dictionaries(st.sampled_from(NAMES) | HEADER, VALUE, max_size=6), body=st.binary(max_size=200)
)
def test_headers_and_bodies_of_any_kind_break_nothing(
    client: httpx.Client, made_up: SimpleNamespace, headers: dict[str, str], body: bytes
) -> None:
    """With the token, anything else may be odd: the answer is a refusal in words, never a defect."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name.lower() != "host")
    run = made_up.run_id(client)
    request = (
        f"POST /api/runs/{run}/note HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}"
        f"Authorization: Bearer {made_up.token}\r\nX-Orienteer: 1\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    status = made_up.ask(int(client.base_url.port or 0), request.encode("latin-1") + body).split(b" ")[1:2]
    assert status in ([b"400"], [b"401"], [b"403"], [b"413"], [b"415"], [b"417"], [b"421"], [b"422"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(("add", "remove", "text", "event_ids")), inner),
    max_leaves=8,
)  # fmt: skip


@FUZZ
@given(body=JSON, route=st.sampled_from(["tags", "note", "exclude", "stop", "start"]))
def test_json_of_any_kind_is_understood_or_refused(
    client: httpx.Client, made_up: SimpleNamespace, body: Any, route: str
) -> None:
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"/api/runs/{made_up.run_id(client)}/{route}", content=content, headers=headers)
    assert answer.status_code in (200, 400, 409, 422)
    assert client.get(f"/api/runs/{made_up.run_id(client)}").status_code == 200
