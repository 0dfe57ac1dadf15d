"""Parameters, results and files of a run, read from its folder for the tables of the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from orienteer.compute.plain_json import plain
from orienteer.errors import OrienteerError
from orienteer.phase.files import DENSITY_MRC, SUPPORT
from orienteer.run.directory import RunDirectory
from orienteer.run.events import STEP, read_events
from orienteer.run.files import INTENSITY_H5, INTENSITY_MRC, LOOP_DENSITY, ORIENTATIONS, REPORT
from orienteer.run.settings_file import read_settings
from orienteer.run.standing import read_standing

# Names of files by role; the first that exists is used.
_FILES = {
    "intensity": (INTENSITY_MRC, "intensity_1.mrc"),
    "intensity file": (INTENSITY_H5,),
    "orientations": (ORIENTATIONS,),
    "density": (DENSITY_MRC, f"{LOOP_DENSITY}.mrc"),
    "support": (SUPPORT,),
    "report": (REPORT,),
}
_LONGEST = 20


class Facts(TypedDict):
    """Parameters and results by name, files by role."""

    parameters: dict[str, Any]
    results: dict[str, Any]
    files: dict[str, str]


def read_facts(folder: Path) -> Facts:
    """The facts about a run; empty if the folder holds no run.

    Parameters are its settings by dotted name, and its method, seed, device and id; results are the numbers
    of its last step, its state and the reason.
    """
    directory = RunDirectory(folder)
    facts: Facts = {"parameters": {}, "results": {}, "files": {}}
    if not directory.is_run:
        return facts
    try:
        described = directory.describe()
        parameters = dict(_flat(read_settings(directory.settings)))
        steps = [event for event in read_events(directory.events) if event["event"] == STEP]
    except OrienteerError:  # written by another version, or damaged: nothing can be read
        return facts
    parameters |= {name: described.get(name) for name in ("method", "seed", "device", "run_id")}
    standing = read_standing(folder)
    last = {
        name: value for name, value in (steps[-1] if steps else {}).items() if name not in ("event", "time")
    }
    numbers = {name: value for name, value in _flat(last) if not isinstance(value, str)}
    facts["parameters"] = {name: plain(value) for name, value in parameters.items()}
    facts["results"] = {
        **{name: plain(value) for name, value in numbers.items()},
        "state": standing.state,
        "reason": standing.reason,
    }
    for role, names in _FILES.items():
        found = next((folder / name for name in names if (folder / name).is_file()), None)
        if found is not None:
            facts["files"][role] = str(found)
    return facts


def _flat(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Values by dotted name; long lists, which are curves, are left out.

    >>> dict(_flat({"emc": {"level": 4}}))
    {'emc.level': 4}
    """
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif not (isinstance(value, (list, tuple)) and len(value) > _LONGEST):
            yield f"{before}{name}", value
