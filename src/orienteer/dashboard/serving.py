"""The server: one process, which listens only on this machine unless another host is given."""

from __future__ import annotations

import os
import secrets
import socket
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orienteer.compute.atomic import unwritable
from orienteer.dashboard.access import LOOPBACK, Gate
from orienteer.dashboard.access_log import AccessLog
from orienteer.dashboard.roots import Roots
from orienteer.errors import FileError, OrienteerError

if TYPE_CHECKING:
    import uvicorn

_SHORTEST_TOKEN = 20
_WAITING = 128


class Server:
    """A dashboard that is ready to be served.

    port : 0 means any free port.
    token : the secret; by default a new one.
    names : further host names by which the server may be called, besides those of the loopback.
    """

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str]],
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str = "",
        names: Sequence[str] = (),
        is_read_only: bool = False,
        campaign: str = "",
        log: Path | None = None,
    ) -> None:
        from orienteer.dashboard.app import make_app
        from orienteer.dashboard.state import State

        self.host = host
        everywhere = host in ("0.0.0.0", "::")
        called = [*LOOPBACK, *names, socket.gethostname() if everywhere else host]
        # Browsers send host names in lower case.
        known = frozenset(name.lower() for name in called)
        self.gate = Gate(token or secrets.token_urlsafe(32), known, is_read_only)
        self.log = AccessLog(log)
        self.state = State(Roots(folders), self.gate, campaign)
        self.app = make_app(self.state, self.log)
        self._socket = _listen(host, port)
        self.port = int(self._socket.getsockname()[1])
        self._is_wanted = True
        self._uvicorn: uvicorn.Server | None = None

    @property
    def address(self) -> str:
        """The address to open in a browser; it contains the token."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/?token={self.gate.token}"

    @property
    def is_only_here(self) -> bool:
        """Whether the server cannot be reached from other machines."""
        return self.host in LOOPBACK

    def run(self) -> None:
        """Serve until a signal or :meth:`stop`."""
        import uvicorn

        config = uvicorn.Config(
            self.app, log_level="warning", access_log=False, server_header=False, limit_concurrency=200,
            ws="websockets-sansio", ws_max_size=4096, timeout_graceful_shutdown=2, lifespan="off",
            proxy_headers=False,  # the client is whoever connects, whatever a header claims
        )  # fmt: skip
        self._uvicorn = uvicorn.Server(config)
        # Read the list now, so that the first page does not wait for it.
        threading.Thread(target=self.state.rows, name="first look", daemon=True).start()
        if self._is_wanted:
            self._uvicorn.run(sockets=[self._socket])

    def stop(self) -> None:
        """End :meth:`run` from another thread."""
        self._is_wanted = False
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    def close(self) -> None:
        """Close the port and the log."""
        self._socket.close()
        self.log.close()


def token_of(path: Path) -> str:
    """The token in a file that only its owner can read; if there is no file, it is made with a new token.

    A server that is started again with the same file has the same address.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        raise unwritable(path, error) from error
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token


def _read_token(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="ascii").strip() if stat.S_ISREG(mode) else ""
    except (OSError, ValueError) as error:
        raise FileError(path, "cannot be read as a token.", "Remove it to get a new one.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise FileError(path, "can be read by others.", f"Make it yours alone: chmod 600 {path}")
    if len(token) < _SHORTEST_TOKEN or not all(c.isalnum() or c in "-_" for c in token):
        raise FileError(path, "holds no token.", "Remove it to get a new one.")
    return token


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP is named explicitly, because only then asyncio sets TCP_NODELAY, and small answers are not delayed.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_WAITING)  # connections before the server runs wait
    except OSError as error:
        listening.close()
        raise OrienteerError(
            f"{host} port {port} cannot be listened on ({error.strerror}).",
            "Give another --host or --port.",
        ) from error
    return listening
