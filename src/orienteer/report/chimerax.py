"""A script that opens the maps of a run in ChimeraX, with thresholds and colours set and half maps hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orienteer.compute.atomic import atomic_path
from orienteer.run.files import CHIMERAX_SCRIPT

NAME = CHIMERAX_SCRIPT


@dataclass(frozen=True)
class Map:
    """A map to open.

    file : path relative to the script, because ChimeraX runs a script in the folder of the script.
    level : of its surface; words : its name in ChimeraX.
    """

    file: str
    words: str
    level: float
    colour: str
    shown: bool = False
    transparency: int = 0


def script(maps: Sequence[Map], extent_A: float) -> str:
    """The commands of the script.

    extent_A : approximate size of the particle; sets the length of the scale bar.
    """
    lines = [
        "# Opens the maps of an Orienteer run.  Hidden ones are shown with: show #2 models",
        "close session",
    ]
    for number, one in enumerate(maps, start=1):
        lines.append(f'open "{one.file}" id {number} name "{one.words}"')
        lines.append(f"volume #{number} style surface step 1 level {one.level:.6g} color {one.colour}")
        if one.transparency:
            lines.append(f"transparency #{number} {one.transparency}")
        if not one.shown:
            lines.append(f"hide #{number} models")
    lines += ["set bgColor white", "lighting soft", "graphics silhouettes true", "camera ortho", "view"]
    # Older versions have no scale bar and stop at an unknown command: so it comes last.
    length_A = _round(extent_A / 4)
    lines += [f"scalebar {length_A:g}", f'2dlabels text "{length_A:g} Å" xpos 0.1 ypos 0.13 size 18']
    return "\n".join(lines) + "\n"


def write_script(folder: Path, maps: Sequence[Map], extent_A: float) -> Path:
    """Write the script into a folder."""
    path = folder / NAME
    with atomic_path(path) as temporary:
        temporary.write_text(script(maps, extent_A), encoding="utf-8")
    return path


def _round(length: float) -> float:
    """The largest of 1, 2, 5, 10, ... that is not larger than the length.

    >>> _round(37.0), _round(0.21)
    (20.0, 0.2)
    """
    decade = 10.0 ** int(f"{length:e}".split("e")[1])
    return max(float(f"{step * decade:g}") for step in (1, 2, 5) if step * decade <= length * (1 + 1e-9))
