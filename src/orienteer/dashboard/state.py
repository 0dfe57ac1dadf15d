"""State: the objects that all requests share."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from orienteer.dashboard import marks
from orienteer.dashboard.access import Gate
from orienteer.dashboard.cache import FileCache
from orienteer.dashboard.campaign_book import CampaignBook
from orienteer.dashboard.index import Entry, RunIndex
from orienteer.dashboard.link_guard import LinkGuard
from orienteer.dashboard.roots import Roots, name_of_run
from orienteer.dashboard.steps import StepLogs
from orienteer.detector.detector import Detector
from orienteer.errors import OrienteerError
from orienteer.run.directory import RunDirectory
from orienteer.run.files import SETTINGS

ELSEWHERE = "elsewhere"
_MOST_BYTES_OF_SETTINGS = 1 << 18


@dataclass(frozen=True)
class State:
    """Roots, the list of runs, the campaign, and caches of what was read of them.

    campaign : address of the database of the beam time; empty: there is none.
    """

    roots: Roots
    gate: Gate
    campaign: str = ""
    index: RunIndex = field(init=False)
    book: CampaignBook = field(init=False)
    steps: StepLogs = field(init=False)
    links: LinkGuard = field(init=False)
    volumes: FileCache = field(init=False)
    facts: FileCache = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", RunIndex(self.roots))
        object.__setattr__(self, "book", CampaignBook(self.campaign))
        object.__setattr__(self, "steps", StepLogs(self.roots))
        object.__setattr__(self, "links", LinkGuard(self.roots))
        # At most 192³ bytes each.
        object.__setattr__(self, "volumes", FileCache(16))
        object.__setattr__(self, "facts", FileCache(64))

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all runs: those below the roots, and those that only the campaign knows."""
        entries = self.index.entries()
        known = self.book.by_folder()
        here = [(entry, known.get(str(entry.path))) for entry in entries]
        met = {found["name"] for _, found in here if found is not None}
        there = [run for run in self.book.runs() if run["name"] not in met]
        return [_with_campaign(entry.row, found) for entry, found in here] + [
            _elsewhere(run) for run in there
        ]

    def row(self, entry: Entry) -> dict[str, Any]:
        """The row of a run below the roots."""
        return _with_campaign(entry.row, self.book.by_folder().get(str(entry.path)))

    def elsewhere(self, run_id: str) -> dict[str, Any] | None:
        """The row of a run that only the campaign knows; None if it knows none with this id."""
        return next((row for row in map(_elsewhere, self.book.runs()) if row["id"] == run_id), None)

    def notes(self, entry: Entry) -> list[dict[str, Any]]:
        """Notes about a run, the oldest first: those in its folder, then those of the campaign."""
        found: list[dict[str, Any]] = []
        with suppress(OrienteerError):  # damaged marks, or a database that is away
            found += marks.notes(self.roots, entry.path)
            known = self.book.by_folder().get(str(entry.path))
            if known is not None and not self.book.trouble:
                name = str(known["name"])
                found += self.book.ask(lambda campaign: campaign.run(name))["notes"]
        return found

    def excluded(self, entry: Entry) -> list[str]:
        """The events that were excluded on the page; none if the list is damaged."""
        with suppress(OrienteerError):
            return [str(number) for number in marks.excluded(self.roots, entry.path)]
        return []

    def frame_tags(self, entry: Entry) -> dict[str, list[str]]:
        """By tag, the events that have it; none if the list is damaged."""
        with suppress(OrienteerError):
            return as_texts_by_tag(marks.frame_tags(self.roots, entry.path))
        return {}

    def detector(self, entry: Entry) -> Detector | None:
        """The detector of a run; None if it has none."""
        directory = RunDirectory(entry.path)
        if directory.detector.exists():
            self.links.file(directory.detector)
        return directory.read_detector()

    def settings(self, entry: Entry) -> dict[str, Any]:
        """The sections of ``settings.toml``; none if it cannot be read."""
        path = entry.path / SETTINGS
        try:
            return tomllib.loads(self.roots.read(path, _MOST_BYTES_OF_SETTINGS).decode())
        except (OrienteerError, ValueError, RecursionError):
            return {}


def as_texts_by_tag(tags: Mapping[str, Iterable[int]]) -> dict[str, list[str]]:
    """Ids of events by tag, as texts for the page."""
    return {tag: [str(number) for number in ids] for tag, ids in tags.items()}


def _with_campaign(row: dict[str, Any], known: dict[str, Any] | None) -> dict[str, Any]:
    """A row, completed with tags, sample and name from the campaign."""
    if known is None:
        return row
    tags = list(dict.fromkeys([*row["tags"], *known["tags"]]))
    return {**row, "tags": tags, "sample": known["sample"] or row["sample"], "campaign_run": known["name"]}


def _elsewhere(run: dict[str, Any]) -> dict[str, Any]:
    """The row of a run whose folder is not below the roots."""
    n_shots, n_hits = run["n_shots"] or 0, run["n_hits"] or 0
    return {
        "id": name_of_run(Path("campaign:"), str(run["name"])),
        "name": run["name"],
        "campaign_run": run["name"],
        "kind": run["kind"] or "",
        "status": ELSEWHERE,
        "words": "The campaign lists this run, but its folder is not among those that are served.",
        "iteration": None,
        "resolution_A": None,
        "agrees_to_A": None,
        "n_frames": n_shots or None,
        "hit_rate": n_hits / n_shots if n_shots else None,
        "tags": run["tags"],
        "sample": run["sample"],
        "note": "",
        "modified": datetime.fromisoformat(run["modified"]).timestamp(),
    }
