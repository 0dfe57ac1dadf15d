"""``orienteer serve``: a process that prints its address, serves it, and leaves when it is told to."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the page needs: pip install 'orienteer[web]'")

import httpx
from typer.testing import CliRunner

from orienteer.cli.main import app
from orienteer.errors import OrienteerError


def test_the_command_prints_where_the_page_is_and_serves_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "orienteer", "serve", str(tmp_path), "--port", "0", "--json"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            text = ""
            while not text.endswith("}\n"):
                text += server.stdout.readline()
            told: dict[str, Any] = json.loads(text)
            headers = {"Authorization": f"Bearer {told['token']}"}
            base = f"http://127.0.0.1:{told['port']}"
            assert httpx.get(f"{base}/api/runs", headers=headers, timeout=60).json()["total"] == 0
            assert httpx.get(f"{base}/api/runs", timeout=60).status_code == 401
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=60) in (0, 143)
        finally:
            server.kill()
    assert "401" in (tmp_path / "state" / "orienteer" / "dashboard.log").read_text()


def test_a_folder_that_is_not_there_is_one_sentence(run: Any) -> None:
    result = run("serve", "nowhere", "--port", 0)
    assert result.status == 1
    assert "nowhere: is not a folder." in result.errors


def test_missing_libraries_are_named_with_the_extra(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("serve")
    assert result.status == 1
    assert "pip install '.[web]'" in result.errors


def test_an_address_without_a_campaign_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="campaigns need: pip install 'orienteer[campaign]'")

    def refusal(address: object) -> str:
        done = CliRunner().invoke(app, ["serve", str(tmp_path), "--port", "0", "--campaign", str(address)])
        assert isinstance(done.exception, OrienteerError)
        assert "Open" not in done.output
        return done.exception.message

    assert "there is no such campaign" in refusal(tmp_path / "nope.db")
    (tmp_path / "text.db").write_text("no database " * 100)
    assert "not a database" in refusal(tmp_path / "text.db")
    assert "mysql" in refusal("mysql://host/name")
