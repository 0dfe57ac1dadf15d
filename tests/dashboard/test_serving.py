"""The server: its address, its token, and what it says when it cannot listen."""

import os
import stat
from pathlib import Path

import pytest

from orienteer.dashboard.serving import Server, token_of
from orienteer.errors import FileError, OrienteerError


def test_a_token_stays_the_same_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = token_of(path)
    assert len(token) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token_of(path) == token


@pytest.mark.parametrize(("content", "mode"), [("short", 0o600), ("x y" * 20, 0o600), ("x" * 40, 0o644)])
def test_a_token_that_others_read_or_guess_is_refused(tmp_path: Path, content: str, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(FileError):
        token_of(path)


def test_every_server_has_a_token_of_its_own(tmp_path: Path) -> None:
    servers = [Server([tmp_path], port=0) for _ in range(2)]
    assert servers[0].gate.token != servers[1].gate.token
    assert servers[0].gate.cookie != servers[1].gate.cookie
    assert servers[0].address.startswith(f"http://127.0.0.1:{servers[0].port}/?token=")
    for server in servers:
        assert server.is_only_here
        server.close()


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    first = Server([tmp_path], port=0)
    with pytest.raises(OrienteerError, match="cannot be listened on"):
        Server([tmp_path], port=first.port)
    first.close()


def test_a_server_for_other_machines_is_called_by_their_names_and_no_others(tmp_path: Path) -> None:
    server = Server([tmp_path], host="0.0.0.0", port=0, names=["Beamline.example.org"])
    assert not server.is_only_here
    assert {"beamline.example.org", os.uname().nodename.lower(), "127.0.0.1"} <= server.gate.names
    assert "0.0.0.0" not in server.gate.names
    server.close()
