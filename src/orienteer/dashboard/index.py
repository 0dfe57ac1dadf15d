"""RunIndex: every run below the roots, kept up to date with as few disk accesses as possible.

A folder is listed again only when its modification time has changed.  Results are put in place by renaming,
which changes the time of the run's folder; logs grow without changing it, and are checked one by one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orienteer.dashboard.cache import Stamp, stamp
from orienteer.dashboard.refusal import Refused
from orienteer.dashboard.roots import Roots, name_of_run
from orienteer.dashboard.rows import LIVE, RUN, read_row
from orienteer.run.files import EVENTS, VALIDATION, VALIDATION_DESCRIPTION

MOST_FOLDERS, MOST_RUNS, DEEPEST = 100_000, 20_000, 8
# A file system may count time in whole seconds: what has just changed is checked again.
_JUST_NOW_S = 2.0
_NEVER = -float("inf")
# Number of looks after which a run that is gone is forgotten.
_REMEMBERED = 1000
_GROWING = (EVENTS, "counters.json", "dashboard.json", f"{VALIDATION}/{VALIDATION_DESCRIPTION}")


@dataclass
class Entry:
    """A run in the list.

    id : its name in requests.  row : its line of the list.  signature : stamps of the files it was read from.
    is_final : whether these files have not changed for a while; only then is the signature reliable.
    """

    id: str
    path: Path
    name: str
    is_live: bool
    row: dict[str, Any]
    signature: tuple[Stamp, ...] = ()
    is_final: bool = False


class RunIndex:
    """The runs below the roots."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        # The number of the last look, and, for each run, of the last look that found it changed.  The pair is
        # replaced as a whole, so that readers need no lock and do not wait for a look.
        self._changed_at: tuple[int, dict[str, int]] = (0, {})
        self._entries: dict[str, Entry] = {}
        self._folders: dict[str, tuple[int, list[str], str]] = {}
        self._guard = threading.Lock()
        self._at, self._cost_s = _NEVER, 0.0

    def entries(self, age_s: float = 1.0) -> list[Entry]:
        """All runs as they were at most ``age_s`` ago, or longer on a slow disk, to limit its load.

        During a look of another thread, the earlier result is returned; only the first look is waited for.

        age_s : 0 means as they are now.
        """
        if self._is_old(age_s) and self._guard.acquire(blocking=age_s <= 0 or self._at == _NEVER):
            try:
                if self._is_old(age_s):
                    self._refresh()
            finally:
                self._guard.release()
        return list(self._entries.values())

    def _is_old(self, age_s: float) -> bool:
        return age_s <= 0 or time.monotonic() - self._at > max(age_s, 4 * self._cost_s)

    def changes(self, since: int) -> tuple[int, list[str]]:
        """The number of the last look, and the runs that have changed or disappeared since look ``since``."""
        self.entries()
        last, changed_at = self._changed_at
        return last, [run for run, look in changed_at.items() if look > since]

    def find(self, run_id: str) -> Entry:
        """The run with this id; refused with status 404 if it is not in the list."""
        self.entries()
        entry = self._entries.get(run_id)
        if entry is None or not self.roots.hold(entry.path):
            raise Refused(404, "There is no such run.", "It may have been moved or removed; see the list.")
        return entry

    def id_of(self, path: Path) -> str | None:
        """The id of the run in a folder; None if the list has none there."""
        return next((entry.id for entry in self.entries() if entry.path == path), None)

    def look_again(self, run_id: str) -> None:
        """Read the row of a run again at the next look, because something was written into its folder."""
        with self._guard:
            if run_id in self._entries:
                self._entries[run_id].signature = ()
            self._at = _NEVER

    def _refresh(self) -> None:
        began = time.monotonic()
        look, changed_at = self._changed_at[0] + 1, dict(self._changed_at[1])
        found: dict[str, Entry] = {}
        for root, path, is_live in self._runs():
            relative = os.path.relpath(path, root)
            run_id = name_of_run(root, relative)
            entry = self._entries.get(run_id)
            if entry is None:
                entry = Entry(run_id, path, self._name(root, relative), is_live, {})
            if self._update(entry):
                changed_at[run_id] = look
            found[run_id] = entry
        for gone in set(self._entries) - set(found):
            changed_at[gone] = look
        self._entries = found
        self._changed_at = (
            look,
            {run: at for run, at in changed_at.items() if run in found or at > look - _REMEMBERED},
        )
        self._at = time.monotonic()
        self._cost_s = self._at - began

    def _update(self, entry: Entry) -> bool:
        """Read the row again if its files may have changed; returns whether anything has."""
        folder = str(entry.path)
        signature = (stamp(folder), *(stamp(f"{folder}/{name}") for name in _GROWING))
        # The times of its files do not show whether a process still works on a run.
        works = entry.row.get("status") == "working"
        if entry.is_final and signature == entry.signature and not works:
            return False
        newest = max((found[0] for found in signature if found), default=0)
        row = read_row(self.roots, entry.path, entry.is_live)
        row |= {"id": entry.id, "name": entry.name, "modified": newest / 1e9}
        is_other = signature != entry.signature or entry.row != row
        # Replace the row as a whole, because other threads may be reading it.
        entry.row, entry.signature = row, signature
        entry.is_final = time.time() - newest / 1e9 > _JUST_NOW_S
        return is_other

    def _name(self, root: Path, relative: str) -> str:
        place = root.name if relative == "." else relative
        return place if len(self.roots.folders) == 1 or relative == "." else f"{root.name}/{place}"

    def _runs(self) -> Iterator[tuple[Path, Path, bool]]:
        """Root, folder and whether it is live, for every run; links are not followed."""
        n_folders = n_runs = 0
        seen: set[str] = set()
        for root in self.roots.folders:
            waiting = [(str(root), 0)]
            while waiting and n_folders < MOST_FOLDERS and n_runs < MOST_RUNS:
                folder, depth = waiting.pop()
                if folder in seen:  # one root may lie in another
                    continue
                seen.add(folder)
                n_folders += 1
                below, kind = self._listed(folder)
                if kind:
                    n_runs += 1
                    yield root, Path(folder), kind == LIVE
                    # Below a run only the map of a live run is listed, not the halves of a validation.
                    below = [name for name in below if name == "map"] if kind == LIVE else []
                if depth < DEEPEST:
                    waiting.extend((f"{folder}/{name}", depth + 1) for name in sorted(below, reverse=True))
        self._folders = {folder: kept for folder, kept in self._folders.items() if folder in seen}

    def _listed(self, folder: str) -> tuple[list[str], str]:
        """Folders below this one, and the name of the file that makes it a run ("" if it is none)."""
        try:
            changed = os.stat(folder).st_mtime_ns
            kept = self._folders.get(folder)
            if kept is not None and kept[0] == changed:
                return kept[1], kept[2]
            below, kind = [], ""
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name == LIVE or (entry.name == RUN and not kind):
                        kind = entry.name
                    elif not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        below.append(entry.name)
        except OSError:  # it is gone, or may not be read
            return [], ""
        if time.time() - changed / 1e9 > _JUST_NOW_S:
            self._folders[folder] = (changed, below, kind)
        return below, kind
