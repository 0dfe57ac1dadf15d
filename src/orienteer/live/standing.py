"""The status of a live run, read quickly from its folder alone, as for any other run."""

from __future__ import annotations

from pathlib import Path

from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.live.folder import LiveFolder
from orienteer.run.events import read_events
from orienteer.run.lock import lock_holder
from orienteer.run.standing import Standing


def read_live_standing(path: Path) -> Standing:
    """The status of the live run in a folder; ``reason`` says how much it has received."""
    folder = LiveFolder(path)
    try:
        folder.describe()
        events = [event["event"] for event in read_events(folder.log.path)]
    except OrienteerError as error:
        return Standing(path, "failed", "live", reason=error.message)
    counters = folder.read_counters()
    holder = lock_holder(path)
    is_finished = bool(counters.get("is_finished")) and events[-1:] == ["finished"]
    return Standing(
        path,
        "working" if holder else "finished" if is_finished else "stopped",
        "live",
        frames=int(counters.get("hits", 0)),
        reason=f"{counted(counters.get('received', 0), 'event')} received, "
        f"{counted(counters.get('hits', 0), 'hit')}",
        host=holder.host if holder else "",
    )
