"""What a validation belongs to: one intensity, and one density; not those that take their place later."""

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
    """Checksums of the intensity and the density of a run, None where there is none that can be read."""
    return {
        "intensity": _known(RunDirectory(run).intensity, lambda path: open_volumes(path)[0]),
        "density": _known(run / DENSITY_H5, open_volume),
    }


def outdated(belongs_to: Mapping[str, Any], run: Path) -> str:
    """Why a validation is not that of what the run now holds, in a sentence; empty when it is."""
    now = identity_of(run)
    for what, why in (("intensity", "the run has gone on"), ("density", "the run was phased again")):
        then = belongs_to.get(what)
        # What was not there, or cannot be read now, contradicts nothing.
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
