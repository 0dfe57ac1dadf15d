"""Sockets: an address belongs to one server at a time, and to the next when that one is gone."""

from pathlib import Path

import pytest

from orienteer.errors import OrienteerError
from orienteer.stream.sockets import close_server, endpoint, open_socket


@pytest.mark.parametrize("kind", ["tcp", "ipc"])
def test_an_address_is_not_taken_from_a_server_that_is_there(kind: str, tmp_path: Path) -> None:
    """ZeroMQ would give the file of a socket to the last who asks, and nobody would reach the first."""
    first = open_socket(
        "ROUTER", "tcp://127.0.0.1:*" if kind == "tcp" else f"ipc://{tmp_path}/s", is_server=True
    )
    address = endpoint(first)
    with pytest.raises(OrienteerError, match=r"cannot be offered at .*in use"):
        open_socket("ROUTER", address, is_server=True)
    close_server(first, 0)
    close_server(open_socket("ROUTER", address, is_server=True), 0)


def test_the_file_that_a_killed_server_has_left_is_in_nobodys_way(tmp_path: Path) -> None:
    import socket

    left = socket.socket(socket.AF_UNIX)
    left.bind(f"{tmp_path}/s")
    left.close()
    close_server(open_socket("ROUTER", f"ipc://{tmp_path}/s", is_server=True), 0)
