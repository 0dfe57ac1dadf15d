"""LiveFolder: the files of a live run and their contents.

| file | contents |
|---|---|
| ``live.json`` | source, filter, shape of frames, versions; a folder with this file is a live run |
| ``settings.toml`` | every setting with the value in use |
| ``detector.h5`` | the detector with its mask, if the stream or the user has described it |
| ``journal/`` | everything received; see ``journal.py`` |
| ``counters.json`` | counters of the last segment, for people and scripts; the journal is authoritative |
| ``events.jsonl`` | starts, stops and faults, one line each |
| ``map/`` | the growing map, which is a run directory; ``map-1/``: an older map that could not be continued |
| ``children/`` | logs of the worker, the map and the database feeder |
| ``lock``, ``worker.lock`` | exist while a process supervises the run, or receives for it |
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orienteer
from orienteer.compute.atomic import unwritable
from orienteer.compute.nearest import meant_instead
from orienteer.compute.plain_json import read_described, write_json
from orienteer.errors import FileError
from orienteer.run.events import EventLog
from orienteer.run.files import EVENTS, SETTINGS
from orienteer.run.settings import Settings
from orienteer.run.settings_file import read_settings, write_settings
from orienteer.source.journal import DESCRIPTION, DETECTOR, FORMAT, VERSION

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector

# The settings sections that a live run uses; the others belong to simulations and to later steps.
SECTIONS = ("run", "calibration", "hits", "live", "online", "emc")


class LiveFolder:
    """The paths of a live run, and the files that are written beside its journal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = path / DESCRIPTION
        self.detector = path / DETECTOR
        self.settings = path / SETTINGS
        self.counters = path / "counters.json"
        self.map = path / "map"
        self.children = path / "children"
        self.log = EventLog(path / EVENTS)

    @property
    def is_begun(self) -> bool:
        """Whether a live run was begun here."""
        return self.description.is_file()

    def make(self) -> None:
        """Make the folder; raises FileError if it already holds anything but a live run."""
        if self.path.exists() and not self.path.is_dir():
            raise FileError(self.path, "is a file, not a folder for a live run.", "Give another path.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Hidden files are leftovers of a killed process or of the file system.
            names = (name for name in os.listdir(self.path) if not name.startswith("."))
            foreign = sorted(name for name in names if not name.endswith("lock"))
            if foreign and not self.is_begun:
                what = f"holds other things ('{foreign[0]}') and no live run."
                raise FileError(self.path, what, "Give a new or an empty folder.")
        except OSError as error:
            raise unwritable(self.path, error) from error

    def begin(self, facts: Mapping[str, Any], settings: Settings) -> bool:
        """Write settings and description; returns whether the run is new.

        A run that is continued keeps its id, date of creation, frame shape and polarisation.

        facts : ``sources`` (addresses by name), their ``options``, ``filter``, ``seed`` and ``device``; they
            may differ from the earlier ones when a run is continued, as its source may have moved.
        """
        is_new = not self.is_begun
        described = {} if is_new else self.describe()
        # The description is written first: ``make`` refuses a folder that holds files but no description.
        write_json(
            self.description,
            {
                "format": FORMAT,
                "version": VERSION,
                "run_id": described.get("run_id") or uuid.uuid4().hex,
                "created": described.get("created") or datetime.now(UTC).isoformat(timespec="seconds"),
                "source": ", ".join(facts.get("sources", {}).values()),
                **facts,
                "frame_shape": described.get("frame_shape"),
                "polarisation": described.get("polarisation"),
                "versions": {"orienteer": orienteer.__version__},
            },
        )
        tree = settings.model_dump(mode="json")
        write_settings(self.settings, {name: tree[name] for name in SECTIONS if name in tree})
        self.children.mkdir(exist_ok=True)
        return is_new

    def describe(self) -> dict[str, Any]:
        """The contents of ``live.json``."""
        if not self.is_begun:
            what = "holds no live run." if self.path.is_dir() else "there is no such folder."
            hint = meant_instead(self.path, "Begin one: orienteer live --source ADDRESS --out FOLDER")
            raise FileError(self.path, what, hint)
        return read_described(self.description, "live run", FORMAT, VERSION)

    def read_settings(self) -> Settings:
        """The settings of the run."""
        return Settings.model_validate(read_settings(self.settings))

    def meet_source(
        self, frame_shape: tuple[int, ...], detector: Detector | None, polarisation: str | None = None
    ) -> None:
        """Record the frame shape, detector and polarisation of the source; refuse frames of another shape."""
        described = self.describe()
        known = described.get("frame_shape")
        if known and tuple(known) != tuple(frame_shape):
            shapes = " x ".join(map(str, frame_shape)), " x ".join(map(str, known))
            what = f"the source has frames of {shapes[0]} pixels, but this run has received {shapes[1]}."
            raise FileError(self.path, what, "Give another --out.")
        if detector is not None:
            self.put_detector(detector)
        if not known:
            told = {"frame_shape": list(frame_shape), "polarisation": polarisation}
            write_json(self.description, {**described, **told})

    def read_detector(self) -> Detector | None:
        """The detector of the run; None if it has not been described yet."""
        from orienteer.detector.hdf5 import stored_detector

        return stored_detector(self.detector)

    def put_detector(self, detector: Detector) -> None:
        """Store this detector for the run; it also applies to the hits already received."""
        from orienteer.detector.hdf5 import store_detector
        from orienteer.run.input import hash_detector

        known = self.read_detector()
        if known is not None and hash_detector(known) == hash_detector(detector):
            return
        store_detector(self.detector, detector)
        if known is not None:
            self.log.append("detector", reason="the detector has changed.")

    def set_aside_map_of_another(self, detector: Detector) -> None:
        """Rename a map that was begun with another detector: it cannot be continued, but is not lost."""
        from orienteer.run.directory import RunDirectory
        from orienteer.run.input import hash_detector

        directory = RunDirectory(self.map)
        if not directory.is_run:
            return
        begun_with = directory.describe().get("input", {}).get("detector")
        if begun_with not in (None, hash_detector(detector)):
            self.set_aside_map("it was begun with another detector")

    def set_aside_map(self, reason: str) -> None:
        """Rename the folder of the map to map-1 (or the next free number), so that a new map is begun."""
        number = 1
        while (aside := self.map.with_name(f"map-{number}")).exists():
            number += 1
        try:
            self.map.rename(aside)
        except OSError as error:
            raise unwritable(self.map, error) from error
        self.log.append("map set aside", reason=f"the map is now in {aside.name}: {reason}.")

    def write_counters(self, counters: Mapping[str, Any]) -> None:
        """Write ``counters.json``."""
        write_json(self.counters, counters)

    def read_counters(self) -> dict[str, Any]:
        """The counters of the last segment; empty if there are none yet."""
        try:
            read = json.loads(self.counters.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}
