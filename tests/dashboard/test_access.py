"""Whoever has no token, comes from elsewhere or asks too much gets nothing, and it is noted."""

import http.client
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from orienteer.dashboard.access_log import AccessLog
from orienteer.dashboard.refusal import Refused

ROUTES = ("/", "/api/runs", "/static/index.html", "/api/campaign", "/api/runs/0123456789abcdef/report")


def port(client: httpx.Client) -> int:
    return int(client.base_url.port or 0)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eA=="},
                                     {"Cookie": "orienteer_token=wrong"}, {"Cookie": "=;;"}])  # fmt: skip
def test_nothing_is_served_without_the_token(
    client: httpx.Client, route: str, headers: dict[str, str]
) -> None:
    del client.headers["Authorization"]
    answer = client.get(route, headers=headers)
    assert answer.status_code in (400, 401)
    assert "virus" not in answer.text


def test_the_printed_address_sets_a_cookie_that_opens_the_page(root: Path, made_up: SimpleNamespace) -> None:
    with made_up.serving(root) as (server, _), httpx.Client() as browser:
        first = browser.get(server.address)
        assert first.status_code == 303
        assert first.headers["location"] == "/"
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert browser.get(server.address.split("?")[0] + "api/runs").json()["total"] == 1


def test_an_address_with_a_wrong_token_sets_no_cookie(client: httpx.Client) -> None:
    del client.headers["Authorization"]
    answer = client.get("/?token=wrong")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_whoever_opens_the_page_without_token_reads_what_to_do(client: httpx.Client) -> None:
    del client.headers["Authorization"]
    answer = client.get("/")
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "Open the address that orienteer serve has printed." in answer.text


def test_an_address_with_too_many_questions_is_refused(client: httpx.Client) -> None:
    del client.headers["Authorization"]
    assert client.get("/?" + "&".join("token=x" for _ in range(50))).status_code == 401


def test_an_address_that_was_followed_from_another_site_is_opened_without_redirection(
    client: httpx.Client, made_up: SimpleNamespace
) -> None:
    answer = client.get(f"/?token={made_up.token}", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text
    assert "set-cookie" in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.org", "127.0.0.1.evil.org", "evil.org:80", "", "[::1", "localhost@evil.org"]
)
def test_another_name_of_this_machine_is_refused(client: httpx.Client, host: str) -> None:
    """A site that makes its own name point here could otherwise read everything as its own."""
    assert client.get("/api/runs", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:9999", "[::1]:8765"])
def test_a_tunnel_may_end_at_any_port(client: httpx.Client, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 200


def test_two_names_at_once_are_refused(client: httpx.Client, made_up: SimpleNamespace) -> None:
    request = (
        "GET /api/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.org\r\nConnection: close\r\n"
        f"Authorization: Bearer {made_up.token}\r\n\r\n"
    )
    assert made_up.ask(port(client), request.encode()).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.org"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Orienteer": ""},
    ],
)
def test_a_page_of_another_site_changes_nothing(
    client: httpx.Client, root: Path, made_up: SimpleNamespace, headers: dict[str, str]
) -> None:
    run = made_up.run_id(client)
    answer = client.post(f"/api/runs/{run}/tags", json={"add": ["mine"]}, headers=headers)
    assert answer.status_code == 403
    assert not (root / "virus" / "dashboard.json").exists()


def test_the_own_page_may_change_things(client: httpx.Client, made_up: SimpleNamespace) -> None:
    run = made_up.run_id(client)
    headers = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    answer = client.post(f"/api/runs/{run}/tags", json={"add": ["mine"]}, headers=headers)
    assert answer.json() == {"tags": ["mine"]}


@pytest.mark.parametrize("route", ["tags", "note", "exclude", "stop", "start"])
def test_read_only_means_that_nothing_is_changed(root: Path, made_up: SimpleNamespace, route: str) -> None:
    before = sorted(root.rglob("*"))
    with made_up.serving(root, is_read_only=True) as (_, client):
        answer = client.post(f"/api/runs/{made_up.run_id(client)}/{route}", json={})
        assert answer.status_code == 403
        assert "read-only" in answer.json()["error"]
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(client: httpx.Client, method: str) -> None:
    assert client.request(method, "/api/runs").status_code in (400, 405)


def test_a_large_body_is_refused_whether_it_says_its_size_or_not(
    client: httpx.Client, made_up: SimpleNamespace
) -> None:
    route = f"/api/runs/{made_up.run_id(client)}/note"
    large = json.dumps({"text": "x" * 70_000}).encode()
    assert client.post(route, content=large).status_code == 413
    assert client.post(route, content=iter([large[:40_000], large[40_000:]])).status_code == 413


def test_a_body_that_is_declared_large_is_not_waited_for(
    client: httpx.Client, made_up: SimpleNamespace
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port(client), timeout=60)
    connection.putrequest("POST", f"/api/runs/{made_up.run_id(client)}/note")
    for name, value in {**client.headers, "Content-Length": "100000000"}.items():
        if name not in ("host", "accept-encoding"):
            connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"token": True, "Origin": "http://evil.org"}]
)
def test_a_socket_needs_the_token_and_the_own_page(
    client: httpx.Client, made_up: SimpleNamespace, headers: dict[str, Any]
) -> None:
    given = dict(headers)
    if given.pop("token", False):
        given["Authorization"] = f"Bearer {made_up.token}"
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{port(client)}/api/watch", additional_headers=given)
    assert refused.value.response.status_code == 403


def test_every_answer_tells_the_browser_to_trust_only_us(client: httpx.Client) -> None:
    for answer in (
        client.get("/api/runs"),
        client.get("/nowhere"),
        client.get("/", headers={"Host": "evil"}),
    ):
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers


def test_what_is_refused_is_noted_without_the_token(
    client: httpx.Client, tmp_path: Path, made_up: SimpleNamespace
) -> None:
    client.get(f"/?token={made_up.token}", headers={"Host": "evil.org"})
    client.get("/a%0d%0aforged", headers={"Host": "evil.org"})
    lines = (tmp_path / "refused.log").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["421", "421"]
    assert r"/a\r\nforged" in lines[1]
    assert made_up.token not in "".join(lines)


def test_paths_that_lead_nowhere_are_noted_even_with_the_token(
    client: httpx.Client, tmp_path: Path, made_up: SimpleNamespace
) -> None:
    climbs = ("/static/..%2f..%2frun.json", "/nowhere", "/api/runs/..%2f..", "/api/runs/ABC/volume")
    for path in climbs:
        assert client.get(path).status_code in (404, 422)
    assert client.get("/api/runs/0123456789abcdef").status_code == 404
    lines = (tmp_path / "refused.log").read_text().splitlines()
    assert len(lines) == len(climbs)
    assert "/static/../../run.json" in lines[0]


def test_the_log_of_refusals_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orienteer.dashboard.access_log.MOST_BYTES", 5000)
    log = AccessLog(tmp_path / "refused.log")
    for _ in range(1000):
        log.note({"type": "http", "path": "/" + "x" * 10_000}, Refused(401, "No."))
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 12_000
