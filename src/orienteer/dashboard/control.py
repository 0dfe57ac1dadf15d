"""Stop runs by a signal to the process that holds their lock, and start new processes that continue them."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from orienteer.cluster.records import how_to_cancel, read_records
from orienteer.compute.atomic import unwritable
from orienteer.dashboard.index import Entry
from orienteer.dashboard.logs import PRINTED
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots
from orienteer.dashboard.rows import LIVE, read_json
from orienteer.errors import FileError, OrienteerError
from orienteer.report.plain_values import as_count
from orienteer.run.lock import NAME as LOCK
from orienteer.run.lock import Holder, lock_holder

_MOST_PRINTED_BYTES = 4 << 20
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_HOW_TO_GO_ON = "Use the command that it was begun with."


class Control:
    """The processes that the dashboard has started; they go on when the dashboard ends."""

    def __init__(self, roots: Roots, campaign: str = "") -> None:
        self._roots, self._campaign = roots, campaign
        self._started: dict[Path, subprocess.Popen[bytes]] = {}
        self._guard = threading.Lock()

    def stop(self, entry: Entry) -> str:
        """Ask the process of a run to save and exit; returns a sentence about what was done."""
        holder = self._holder(entry)
        if holder is None:
            raise Refused(409, "No process works on this run.")
        if not holder.is_here:
            jobs = [record.number for record in read_records(entry.path)]
            hint = f"Or cancel its job: {how_to_cancel(jobs[-1:])}" if jobs else ""
            raise Refused(409, f"The run is worked on by {holder}; only that machine can stop it.", hint)
        _terminate(holder, entry.path / LOCK)
        return f"Asked {holder} to save and exit."

    def start(self, entry: Entry) -> str:
        """Continue a run in a new process; returns a sentence about what was done."""
        with self._guard:  # if two ask at once, only one starts it
            return self._start(entry)

    def _start(self, entry: Entry) -> str:
        self._started = {path: one for path, one in self._started.items() if one.poll() is None}
        if entry.path in self._started or self._holder(entry) is not None:
            raise Refused(409, "A process already works on this run.")
        if (entry.path.parent / LIVE).exists() and entry.path.name == "map":
            raise Refused(409, "This map grows with its live run.", "Start the live run.")
        if entry.row["status"] == "finished":
            raise Refused(409, "The run is finished.")
        if entry.row["status"] not in ("stopped", "failed", "new"):
            raise Refused(409, f"The run cannot be continued: {entry.row['words']}")
        command = [sys.executable, "-m", *self._arguments(entry)]
        printed = _printed_to(entry.path / PRINTED)
        try:
            self._started[entry.path] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                # Never import modules from the folder in which the dashboard was started.
                env={**os.environ, "PYTHONSAFEPATH": "1", **self._secrets()},
                start_new_session=True,
            )
        except OSError as error:
            raise OrienteerError(
                f"The run could not be started ({error.strerror}).",
                "Start it on that machine with the command that began it.",
            ) from error
        finally:
            os.close(printed)
        return f"Started process {self._started[entry.path].pid}; it goes on from the last checkpoint."

    def _secrets(self) -> dict[str, str]:
        """The password of the database as an environment variable; other users could read it in a command."""
        from orienteer.campaign.address import apart_from_password

        password = apart_from_password(self._campaign)[1]
        return {"PGPASSWORD": password} if password else {}

    def _holder(self, entry: Entry) -> Holder | None:
        """The process that works on a run; a lock outside the folder of the run is refused."""
        lock = entry.path / LOCK
        if lock.is_symlink():
            raise Refused(409, "The lock of this run is a link, so the process of the run is not known.")
        if lock.exists():
            self._roots.file(lock)
        return lock_holder(entry.path)

    def _arguments(self, entry: Entry) -> list[str]:
        """Module and arguments that continue a run; no program is ever taken from a file."""
        if not entry.is_live:
            return ["orienteer.dashboard.resuming", str(entry.path)]
        return live_arguments(entry.path, read_json(self._roots, entry.path / LIVE), self._campaign)


def live_arguments(path: Path, described: dict[str, Any], campaign: str) -> list[str]:
    """The command that continues a live run, made from its description."""
    sources, options = described.get("sources"), described.get("options") or {}
    seed, device = as_count(described.get("seed")), described.get("device")
    if not _are_named(sources, str) or not sources or not _are_named(options, str | int | float | list):
        raise Refused(409, "The description of this live run has no valid sources or options.", _HOW_TO_GO_ON)
    if seed is None or device not in ("auto", "cpu", "cuda"):
        raise Refused(409, "The description of this live run has no valid seed or device.", _HOW_TO_GO_ON)
    if described.get("filter") != "":
        what = "This live run has a filter, which is a program; the dashboard does not start such programs."
        raise Refused(409, what, _HOW_TO_GO_ON)
    from orienteer.campaign.address import apart_from_password

    sample = described.get("sample")
    into = [f"--campaign={apart_from_password(campaign)[0]}"] if campaign else []
    if campaign and isinstance(sample, str) and sample:
        into.append(f"--sample={sample}")
    return [
        "orienteer", "live", f"--out={path}", f"--settings={path / 'settings.toml'}", f"--seed={seed}",
        f"--device={device}",
        *(f"--source={name}={address}" for name, address in sources.items()),
        *(f"--option={name}={json.dumps(value)}" for name, value in options.items()),
        *into,
    ]  # fmt: skip


def _are_named(values: Any, kinds: Any) -> bool:
    """Whether this is a table of values of these kinds, with names that are safe on a command line."""
    return isinstance(values, dict) and all(
        _NAME.fullmatch(name) and isinstance(value, kinds) and value != "" for name, value in values.items()
    )


def _terminate(holder: Holder, lock: Path) -> None:
    """Send SIGTERM to the process that holds a lock, and to no other.

    A lock is a file, and everybody who may write to it can put any process number into it.  So the signal is
    sent only to a process that has the lock open, and through a pidfd, which never refers to another process.
    """
    try:
        handle = os.pidfd_open(holder.pid)
    except OSError as error:
        raise Refused(409, "The process that worked on this run is gone.") from error
    try:
        if not holder.is_alive_here or not _has_open(holder.pid, lock):
            raise Refused(409, "The lock of this run names a process that does not hold it; none is stopped.")
        signal.pidfd_send_signal(handle, signal.SIGTERM)
    except OSError as error:
        raise Refused(409, f"{holder} could not be asked to stop ({error.strerror}).") from error
    finally:
        os.close(handle)


def _has_open(pid: int, file: Path) -> bool:
    """Whether a process has this file open."""
    try:
        wanted = os.stat(file)
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for one in opened:
        try:
            if os.path.samestat(one.stat(), wanted):
                return True
        except OSError:  # it was closed meanwhile
            continue
    return False


def _printed_to(path: Path) -> int:
    """Open the file for the output of a process; a file that has become too long is emptied."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:  # for example a link, or a named pipe without a reader
        raise unwritable(path, error) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise FileError(path, "is not a regular file.", "Remove it.")
    if found.st_size > _MOST_PRINTED_BYTES:
        os.ftruncate(descriptor, 0)
    os.set_blocking(descriptor, True)
    return descriptor
