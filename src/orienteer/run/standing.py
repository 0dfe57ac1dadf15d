"""Standing: the state of a run, read quickly from its folder alone; nothing is computed or waited for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from orienteer.errors import OrienteerError
from orienteer.run.directory import RunDirectory
from orienteer.run.events import read_last_events
from orienteer.run.lock import NAME as LOCK
from orienteer.run.lock import lock_holder

# A lock is renewed every few seconds, but clocks of machines and file systems may differ by more.
_STALE_S = 180.0


@dataclass(frozen=True)
class Standing:
    """The state of a run.

    state : new (there is no run yet), working, stopped (it can go on), failed or finished.
    reason : why it has finished or failed.
    seconds_left : estimate of the time until its end; seconds_since : time since the last line of its log.
        Either is None if not known.
    host : the machine on which a process works on it; empty if there is none.
    """

    path: Path
    state: Literal["new", "working", "stopped", "failed", "finished"]
    method: str = ""
    frames: int | None = None
    iteration: int = 0
    stage: int | None = None
    n_stages: int | None = None
    agrees_to_A: float | None = None
    seconds_left: float | None = None
    seconds_since: float | None = None
    reason: str = ""
    host: str = ""


def read_standing(path: Path) -> Standing:
    """The state of the run in a folder; "new" if the folder holds none."""
    directory = RunDirectory(path)
    if not directory.is_run:
        return Standing(path, "new")
    try:
        described = directory.describe()
        last, step = read_last_events(directory.events)
    except OrienteerError as error:
        return Standing(path, "failed", reason=error.message)
    host = working_host(path)
    ends = {"finished": "finished", "failed": "failed"}
    state: Any = "working" if host else ends.get(str(last.get("event")), "stopped")
    since = _seconds_since(last.get("time"))
    left = step.get("seconds_left")
    return Standing(
        path,
        state,
        str(described["method"]),
        described["input"].get("frames"),
        int(step.get("iteration") or 0),
        step.get("stage"),
        step.get("n_stages"),
        step.get("agrees_to_A"),
        None
        if left is None or state == "finished"
        else max(0.0, left - (since or 0.0) * (state == "working")),
        since,
        str(last.get("reason") or "") if state in ("finished", "failed") else "",
        host,
    )


def working_host(path: Path) -> str:
    """The machine on which a process holds the lock of a folder; empty if none, or if the lock is stale."""
    holder = lock_holder(path)
    try:
        age_s = time.time() - (path / LOCK).stat().st_mtime
    except OSError:
        return ""
    return "" if holder is None or (age_s > _STALE_S and not holder.is_here) else holder.host


def _seconds_since(text: Any) -> float | None:
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds())
    except (TypeError, ValueError):
        return None
