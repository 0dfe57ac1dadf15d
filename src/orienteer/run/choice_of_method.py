"""``--method auto``: which method the data call for, by a rule that is told with the result.

M-TIP has fewer unknowns and made more of the same frames wherever both were measured side by side
(``bench/data_efficiency.py``); it takes two to five times as long.  Of a nearly round particle of high
symmetry its halves agree further than they should; how it tells states apart was not measured against EMC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from orienteer.orientation.point_group import as_point_group
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.base import Source

AUTO = "auto"
# Frames up to which M-TIP was measured to be better; and the order from which on particles are nearly round.
MOST_FRAMES, ROUND = 3000, 12


class Choice(NamedTuple):
    """A method by its name, and why it was chosen, in one sentence."""

    name: str
    because: str


def choose_method(source: Source, settings: EmcSettings) -> Choice:
    """The method for these data.

    settings : symmetry and number of models count, whichever method they are of.
    """
    n_frames = source.n_frames or 0
    if settings.models != 1:
        return Choice("emc", "EMC was chosen, which tells several states apart.")
    if as_point_group(settings.symmetry).order >= ROUND:
        return Choice(
            "emc", f"EMC was chosen, since a particle of symmetry {settings.symmetry} is nearly round."
        )
    if n_frames > MOST_FRAMES:
        return Choice("emc", f"EMC was chosen: {n_frames:,} frames are more than {MOST_FRAMES:,}.")
    few = f"of {n_frames:,} frames, at most {MOST_FRAMES:,}, it makes more than EMC"
    return Choice("mtip", f"M-TIP was chosen: {few}.")


def shared_settings(settings: Any) -> EmcSettings:
    """What both methods are told, of a section, of all sections joined, or of names and values of either."""
    if isinstance(settings, EmcSettings):
        return settings
    given = settings
    for name in ("emc", "mtip"):
        part = settings.get(name) if isinstance(settings, Mapping) else getattr(settings, name, None)
        if isinstance(part, EmcSettings) and part.model_fields_set:
            return part
        if isinstance(part, Mapping):
            given = part
    if not isinstance(given, Mapping):
        return EmcSettings()
    names = {"symmetry", "models"}
    return EmcSettings(**{str(key): value for key, value in given.items() if key in names})
