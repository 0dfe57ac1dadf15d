"""State: what all requests share."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import Any

from orienteer.dashboard.access import Gate
from orienteer.dashboard.cache import FileCache
from orienteer.dashboard.index import Entry, RunIndex
from orienteer.dashboard.roots import Roots
from orienteer.dashboard.steps import StepLogs
from orienteer.errors import OrienteerError

_MOST_BYTES_OF_SETTINGS = 1 << 18


@dataclass(frozen=True)
class State:
    """Roots, the list of runs, and what was read of them lately.

    campaign : where the database of the beam time is; empty: there is none.
    """

    roots: Roots
    gate: Gate
    campaign: str = ""
    index: RunIndex = field(init=False)
    steps: StepLogs = field(init=False)
    volumes: FileCache = field(init=False)
    facts: FileCache = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", RunIndex(self.roots))
        object.__setattr__(self, "steps", StepLogs(self.roots))
        # At most 192³ bytes each.
        object.__setattr__(self, "volumes", FileCache(16))
        object.__setattr__(self, "facts", FileCache(256))

    def marked(self, entry: Entry) -> dict[str, Any]:
        """The row of a run."""
        return entry.row

    def settings(self, entry: Entry) -> dict[str, Any]:
        """The sections of ``settings.toml``; none where it cannot be read."""
        path = entry.path / "settings.toml"
        try:
            return tomllib.loads(self.roots.read(path, _MOST_BYTES_OF_SETTINGS).decode())
        except (OrienteerError, ValueError, RecursionError):
            return {}
