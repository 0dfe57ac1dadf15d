"""Supervisor: starts the processes of a live run, and restarts those that die, after growing pauses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orienteer.errors import FileError, OrienteerError
from orienteer.live.allocator import give_back_freed_memory
from orienteer.live.folder import LiveFolder
from orienteer.live.joining import join_segments
from orienteer.live.roles import DONE, NO_USE

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
# A process that ran this long did not fail at its start: the pause before a restart is short again.
_LIVED_S = 30.0
_JOIN_EVERY_S = 20.0
_LONGEST_LOG_BYTES = 1 << 20
_TAIL_BYTES = 2000


@dataclass
class Child:
    """A process of a live run.

    state : working, waiting (to be started again), done, or given up (the user has to fix something first).
    """

    role: str
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    state: Literal["working", "waiting", "done", "given up"] = "waiting"
    n_starts: int = 0
    pause_s: float = _FIRST_PAUSE_S
    begun_s: float = 0.0
    not_before_s: float = 0.0
    n_received: int = 0  # events that the run had received when this process ended

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self.state in ("done", "given up")

    @property
    def words(self) -> str:
        """The last line of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class Supervisor:
    """The processes of a live run, from their start to their end.

    roles : by name, with what to add to the environment of each.
    """

    def __init__(self, folder: LiveFolder, roles: Mapping[str, Mapping[str, str]]) -> None:
        self._folder = folder
        self.children = [
            Child(role, folder.children / f"{role}.log", environment) for role, environment in roles.items()
        ]
        self._is_stopping = False
        self._joining: threading.Thread | None = None
        self._joined_s = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to supervise: all have ended for good, or the worker is given up."""
        worker = self.children[0]
        return worker.state == "given up" or all(child.is_over for child in self.children)

    def command(self, role: str) -> list[str]:
        """The command line that runs a role."""
        return [sys.executable, "-m", "orienteer.live.roles", role, str(self._folder.path)]

    def look(self) -> None:
        """Note processes that have ended, start those that are due, and join old segments now and then."""
        for child in self.children:
            if child.process is not None and (status := child.process.poll()) is not None:
                self._ended(child, status)
            if child.process is None and not child.is_over and time.monotonic() >= child.not_before_s:
                self._start(child)
        self._join_now_and_then()

    def stop(self, notice_s: float) -> None:
        """Ask all processes to save and exit; kill those that need longer, which loses nothing committed."""
        self._is_stopping = True
        processes = [child.process for child in self.children if child.process is not None]
        for process in processes:
            with suppress(OSError):
                process.terminate()
        until = time.monotonic() + notice_s
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()
            _close(process)
        if self._joining is not None:
            self._joining.join()

    def _start(self, child: Child) -> None:
        """Start a process; its standard input is a pipe from here, which ends when this process dies."""
        environment = {**os.environ, **child.environment}
        mode = "wb" if child.log.exists() and child.log.stat().st_size > _LONGEST_LOG_BYTES else "ab"
        try:
            with child.log.open(mode) as log:
                child.process = subprocess.Popen(
                    self.command(child.role),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,  # a Ctrl-C at the terminal reaches only the supervisor
                )
        except OSError as error:
            raise OrienteerError(
                f"the {child.role} cannot be started ({error.strerror}).",
                "Has this machine run out of memory or processes? The same command continues the run.",
            ) from error
        child.n_starts += 1
        child.begun_s, child.state = time.monotonic(), "working"
        self._note("started", role=child.role, pid=child.process.pid)

    def _ended(self, child: Child, status: int) -> None:
        assert child.process is not None
        _close(child.process)
        child.process = None
        if status in (DONE, NO_USE):
            child.state = "done" if status == DONE else "given up"
            child.n_received = self._n_received()
            self._note(child.state, role=child.role, reason=child.words)
            if child is self.children[0] and status == DONE:
                self._start_again_who_was_done_too_early()
            return
        child.state = "waiting"
        if time.monotonic() - child.begun_s > _LIVED_S:
            child.pause_s = _FIRST_PAUSE_S
        child.not_before_s = time.monotonic() + child.pause_s
        child.pause_s = min(2 * child.pause_s, _LONGEST_PAUSE_S)
        how = f"was ended by signal {-status}" if status < 0 else f"left with status {status}"
        self._note("failed", role=child.role, reason=f"the {child.role} {how}.", words=child.words)

    def _note(self, event: str, **facts: Any) -> None:
        """Append a line to the log; if the disk is full, the line is lost and the run goes on."""
        with suppress(FileError):
            self._folder.log.append(event, **facts)

    def _start_again_who_was_done_too_early(self) -> None:
        """Restart processes that ended before the worker had received everything.

        A continued run still has its old ``is_finished`` until the worker receives more; the map and the
        feeder may have read it and left.
        """
        for child in self.children[1:]:
            if child.state == "done" and child.n_received < self.children[0].n_received:
                child.state = "waiting"

    def _n_received(self) -> int:
        return int(self._folder.read_counters().get("received", 0))

    def _join_now_and_then(self) -> None:
        is_due = time.monotonic() - self._joined_s > _JOIN_EVERY_S
        if not is_due or (self._joining is not None and self._joining.is_alive()):
            return
        self._joined_s = time.monotonic()
        self._joining = threading.Thread(target=self._join, name="joining segments", daemon=True)
        self._joining.start()

    def _join(self) -> None:
        with suppress(OrienteerError):  # joining is optional, and is tried again later
            if join_segments(self._folder.path, is_wanted=lambda: not self._is_stopping):
                give_back_freed_memory()


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
