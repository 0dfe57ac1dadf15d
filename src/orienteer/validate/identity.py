"""The intensity and the densities that a validation belongs to, by checksum, to notice if they change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orienteer.errors import OrienteerError
from orienteer.phase.files import DENSITY_H5
from orienteer.run.directory import RunDirectory
from orienteer.volume.checksum import checksum
from orienteer.volume.opening import open_volume, open_volumes
from orienteer.volume.volume import Volume

# The folders of the densities of further states.
_FURTHER = re.compile(r"phased_model_(\d+)")


def identity_of(run: Path) -> dict[str, str | None]:
    """Checksums of the intensity and the densities of a run; None for what is not there or cannot be read.

    ``density`` is that of the first state; ``density_2`` and so on are there if these folders are.
    """
    further = {found[1]: folder for folder in run.iterdir() if (found := _FURTHER.fullmatch(folder.name))}
    return {
        "intensity": _known(RunDirectory(run).intensity, lambda path: open_volumes(path)[0]),
        "density": _known(run / DENSITY_H5, open_volume),
        **{
            f"density_{state}": _known(further[state] / DENSITY_H5, open_volume)
            for state in sorted(further, key=int)
        },
    }


def outdated(belongs_to: Mapping[str, Any], run: Path) -> str:
    """Why a validation does not belong to the present files of the run, in a sentence; empty if it does."""
    now = identity_of(run)
    # A file that was missing then, or cannot be read now, does not count as changed.
    changed = [what for what, then in belongs_to.items() if then and now.get(what) and then != now[what]]
    if "intensity" in changed:
        return "This was of another intensity: the run has gone on since."
    return "This was of another density: the run was phased again since." if changed else ""


def _known(path: Path, read: Callable[[Path], Volume]) -> str | None:
    if not path.exists():
        return None
    try:
        return checksum(read(path))
    except OrienteerError:
        return None
