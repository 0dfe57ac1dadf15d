"""Watch: ranks watch each other, so that one that hangs or dies does not keep the others waiting.

A thread of every rank reports to the leader every few seconds how far its work is and whether it waits for
others; that is one small message over one connection, and no file.  If no rank has made progress for too
long, the leader names the rank that the others wait for and the line of the program where it stands, and ends
the job.  A rank whose connection breaks without a message of farewell has died.  If the leader does not
answer, the others notice and end the job.
"""

from __future__ import annotations

import json
import secrets
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from orienteer.compute.progress import n_told
from orienteer.run.crew import Crew
from orienteer.run.fault import Fault, Kind

HANG_S = 1800.0
_INTERVAL_S = 5.0
# The leader checks this often whether the block is over, so that its end waits no longer.
_WAKE_S = 0.5
_CONNECT_S = 10.0
_LINE_BYTES = 4096
# A main thread inside one of these files waits for other ranks.
_WAITING_IN = ("compute/ranks/mpi.py", "compute/ranks/claims.py", "run/crew.py")


@dataclass
class Report:
    """What the leader knows of a rank.

    beats : number of signs of progress; moved_s : when that number last changed.
    heard_s : when its last report came.
    """

    beats: int = -1
    where: str = ""
    is_waiting: bool = False
    moved_s: float = 0.0
    heard_s: float = 0.0

    def take(self, beats: int, where: str, is_waiting: bool) -> None:
        """Take in a report of the rank."""
        self.heard_s = time.monotonic()
        if beats != self.beats:
            self.moved_s = self.heard_s
        self.beats, self.where, self.is_waiting = beats, where, is_waiting


class Watch:
    """All ranks enter and leave this block together.

    hang_s : if no rank makes progress for this long, the job ends.  0: no watch.
    hint : how to go on.
    end_job : ends all ranks, and prints why.
    """

    def __init__(self, crew: Crew, hang_s: float, hint: str, end_job: Callable[[Fault], None]) -> None:
        self._crew, self._hang_s, self._hint, self._end_job = crew, hang_s, hint, end_job
        self._interval_s = min(_INTERVAL_S, hang_s / 10)
        self._is_over = threading.Event()
        self._main = threading.get_ident()
        self._thread: threading.Thread | None = None
        self._steps = 0

    def beat(self) -> None:
        """Count a sign of progress of the main thread."""
        self._steps += 1

    def __enter__(self) -> Self:
        if self._crew.is_alone or self._hang_s <= 0:
            return self
        server = _listen() if self._crew.leads else None
        port = 0 if server is None else server.getsockname()[1]
        address: tuple[str, int, str] = self._crew.from_leader((self._crew.host, port, secrets.token_hex(8)))
        if server is not None:
            work, arguments = self._look_after, (server, address[2])
        else:
            work, arguments = self._report, address  # type: ignore[assignment]
        self._thread = threading.Thread(target=work, args=arguments, name="orienteer watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join(2 * self._interval_s)

    def _own(self) -> tuple[int, str, bool]:
        where, is_waiting = stand_of(self._main)
        return n_told() + self._steps, where, is_waiting

    # Followers --------------------------------------------------------------------------------------------

    def _report(self, host: str, port: int, token: str) -> None:
        host = "127.0.0.1" if host == self._crew.host else host
        try:
            line = socket.create_connection((host, port), _CONNECT_S)
        except OSError:
            return  # the network lets only MPI through: this rank is not watched
        heard_s = time.monotonic()
        with line:
            line.settimeout(0)
            while True:
                message = {"token": token, "rank": self._crew.rank, "own": self._own()}
                with suppress(OSError):
                    line.sendall(json.dumps(message).encode() + b"\n")
                with suppress(OSError):
                    if line.recv(_LINE_BYTES):
                        heard_s = time.monotonic()
                if time.monotonic() - heard_s > self._hang_s + 3 * self._interval_s:
                    self._end("hang", 0, f"has not answered for {self._hang_s:.0f} s")
                if self._is_over.wait(self._interval_s):
                    break
            with suppress(OSError):
                message = {"token": token, "rank": self._crew.rank, "bye": True}
                line.sendall(json.dumps(message).encode() + b"\n")

    # The leader -------------------------------------------------------------------------------------------

    def _look_after(self, server: socket.socket, token: str) -> None:
        now_s = time.monotonic()
        reports = [Report(moved_s=now_s, heard_s=now_s) for _ in range(self._crew.size)]
        known: set[int] = {0}
        with server, selectors.DefaultSelector() as selector:
            selector.register(server, selectors.EVENT_READ)
            while not self._is_over.is_set():
                for key, _ in selector.select(min(self._interval_s, _WAKE_S)):
                    if key.fileobj is server:
                        with suppress(OSError):  # the other side has closed the connection again
                            line, _ = server.accept()
                            selector.register(line, selectors.EVENT_READ, _Peer())
                        continue
                    peer: _Peer = key.data
                    if not peer.read(key.fileobj, token, reports):
                        selector.unregister(key.fileobj)
                        if peer.rank > 0 and not peer.has_left and not self._is_over.is_set():
                            self._end("death", peer.rank, "has died")
                    elif peer.rank > 0:
                        known.add(peer.rank)
                reports[0].take(*self._own())
                self._judge([reports[rank] for rank in sorted(known)], sorted(known))

    def _judge(self, reports: list[Report], ranks: list[int]) -> None:
        """End the job if no rank has made progress for too long."""
        now_s = time.monotonic()
        if len(ranks) < self._crew.size or now_s - max(report.moved_s for report in reports) < self._hang_s:
            return
        for rank, report in zip(ranks, reports, strict=True):
            if now_s - report.heard_s > 3 * self._interval_s:
                self._end("hang", rank, f"has not answered for {now_s - report.heard_s:.0f} s")
            if not report.is_waiting:
                self._end("hang", rank, f"has done nothing for {self._hang_s:.0f} s, at {report.where}")
        self._end("hang", 0, f"and all other ranks have waited for each other for {self._hang_s:.0f} s")

    def _end(self, kind: Kind, rank: int, what: str) -> None:
        host = self._crew.members[rank][0]
        self._end_job(Fault(kind, f"{self._crew.name(rank)} {what}.", self._hint, rank, host))


class _Peer:
    """The leader's end of a connection."""

    def __init__(self) -> None:
        self.rank = 0
        self.has_left = False
        self._unread = b""

    def read(self, line: Any, token: str, reports: list[Report]) -> bool:
        """Take in what was sent; false if the connection is closed, or is not from a rank of this job."""
        try:
            came = line.recv(_LINE_BYTES)
        except OSError:
            came = b""
        if not came:
            line.close()
            return False
        *whole, self._unread = (self._unread + came).split(b"\n")
        is_ours = len(self._unread) <= _LINE_BYTES and all(self._take(text, token, reports) for text in whole)
        if not is_ours:
            line.close()
            return False
        if whole:
            with suppress(OSError):
                line.send(b".")
        return True

    def _take(self, text: bytes, token: str, reports: list[Report]) -> bool:
        """Take in one line; false if no rank of this job sent it: any program can connect to the port."""
        try:
            said = json.loads(text)
            if not isinstance(said, dict) or not secrets.compare_digest(str(said["token"]), token):
                return False
            rank = int(said["rank"])
            if not 0 < rank < len(reports):
                return False
            self.rank = rank
            if said.get("bye"):
                self.has_left = True
            else:
                beats, where, is_waiting = said["own"]
                reports[rank].take(int(beats), str(where), bool(is_waiting))
        except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
            return False
        return True


def stand_of(thread: int) -> tuple[str, bool]:
    """Where a thread stands in this program, and whether it waits there for other ranks."""
    frame = sys._current_frames().get(thread)
    where, is_waiting = "", False
    while frame is not None:
        name = frame.f_code.co_filename.replace("\\", "/")
        is_waiting = is_waiting or name.endswith(_WAITING_IN)
        if not where and "/orienteer/" in name:
            where = f"{name.rpartition('/orienteer/')[2]} line {frame.f_lineno}"
        frame = frame.f_back
    return where or "a place outside of Orienteer", is_waiting


def _listen() -> socket.socket:
    server = socket.create_server(("", 0), backlog=1024)
    server.setblocking(True)
    return server
