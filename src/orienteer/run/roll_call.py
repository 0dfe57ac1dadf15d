"""RollCall: lets the process that starts ranks know which processes they are, and which one is lost first.

When a rank is lost, MPI ends the others at once, and launchers name any of them.  So every rank keeps a
connection to the process that has started the job, and sends only its name over it.  When the rank ends, in
whatever way, the system closes the connection before any other rank can react.
"""

from __future__ import annotations

import os
import secrets
import selectors
import socket
import threading
from typing import Self

from orienteer.compute.ranks.launchers import launched_rank

VARIABLE = "ORIENTEER_ROLL_CALL"
_CONNECT_S = 30.0
_POLL_S = 0.2
_LINE_BYTES = 512
# The connection of this rank lives as long as its process.
_line: socket.socket | None = None


class RollCall:
    """Inside the block ranks can connect.

    members : host and process number of each rank that has connected.
    ended : ranks whose processes have ended, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.members: dict[int, tuple[str, int]] = {}
        self.ended: list[int] = []
        self._token = secrets.token_hex(8)
        self._is_over = threading.Event()
        self._server = socket.create_server(("", 0), backlog=1024)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that the ranks need."""
        port = self._server.getsockname()[1]
        return {VARIABLE: f"{socket.gethostname()} {port} {self._token}"}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._listen, name="orienteer roll call", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _listen(self) -> None:
        with self._server, selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            lines: list[socket.socket] = []
            came: list[selectors.SelectorKey] = []
            # After the job has ended, read what has arrived until then.
            while not self._is_over.is_set() or came:
                came = [key for key, _ in selector.select(0 if self._is_over.is_set() else _POLL_S)]
                for key in came:
                    if key.fileobj is self._server:
                        lines.append(self._server.accept()[0])
                        selector.register(lines[-1], selectors.EVENT_READ, list[int]())
                    elif isinstance(key.fileobj, socket.socket) and not self._hear(key.fileobj, key.data):
                        selector.unregister(key.fileobj)
            for line in lines:
                line.close()

    def _hear(self, line: socket.socket, rank: list[int]) -> bool:
        """Take in the name of a rank, or its end; returns whether the connection is still open."""
        try:
            said = line.recv(_LINE_BYTES).decode(errors="replace").split()
        except OSError:
            said = []
        if len(said) == 4 and said[0] == self._token and said[1].isdigit() and said[3].isdigit():
            rank[:] = [int(said[1])]
            self.members[rank[0]] = said[2], int(said[3])
            return True
        self.ended.extend(rank)
        return False


def answer_roll_call() -> None:
    """Connect to the process that has started this rank and send its name; does nothing without a RollCall.

    Called before MPI is loaded, so that a rank that is lost early can be named as well; done in a thread, so
    that a network that blocks the connection costs no time.
    """
    asked = os.environ.get(VARIABLE, "").split()
    rank = launched_rank()
    if len(asked) == 3 and asked[1].isdigit() and rank is not None:
        threading.Thread(target=_answer, args=(asked[0], int(asked[1]), asked[2], rank), daemon=True).start()


def _answer(host: str, port: int, token: str, rank: int) -> None:
    global _line
    own = socket.gethostname()
    try:
        _line = socket.create_connection(("127.0.0.1" if host == own else host, port), _CONNECT_S)
        _line.sendall(f"{token} {rank} {own} {os.getpid()}\n".encode())
    except OSError:
        _line = None
