"""The intensity and the density that a validation belongs to, by checksum, to notice if they change later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orienteer.errors import OrienteerError
from orienteer.phase.files import DENSITY_H5
from orienteer.run.directory import RunDirectory
from orienteer.volume.checksum import checksum
from orienteer.volume.opening import open_volume, open_volumes
from orienteer.volume.volume import Volume


def identity_of(run: Path) -> dict[str, str | None]:
    """Checksums of the intensity and the density of a run; None if there is none that can be read."""
    return {
        "intensity": _known(RunDirectory(run).intensity, lambda path: open_volumes(path)[0]),
        "density": _known(run / DENSITY_H5, open_volume),
    }


def outdated(belongs_to: Mapping[str, Any], run: Path) -> str:
    """Why a validation does not belong to the present files of the run, in a sentence; empty if it does."""
    now = identity_of(run)
    for what, why in (("intensity", "the run has gone on"), ("density", "the run was phased again")):
        then = belongs_to.get(what)
        # A file that was missing then, or cannot be read now, does not count as changed.
        if then and now[what] and then != now[what]:
            return f"This was of another {what}: {why} since."
    return ""


def _known(path: Path, read: Callable[[Path], Volume]) -> str | None:
    if not path.exists():
        return None
    try:
        return checksum(read(path))
    except OrienteerError:
        return None
