"""``--method auto``: choose a method by the data; the result names the reason.

M-TIP has fewer unknowns than EMC.  From few, bright frames it gave a better result in every comparison
(``bench/data_efficiency.py``).  From dim frames, and for nearly round particles of high symmetry, its claim
was too good: its halves agreed to a finer resolution than either agreed with the truth.  It takes two to five
times as long.  How well it separates states was not compared with EMC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.base import Source
from orienteer.source.summary import blocks_to_look_at, summarise

AUTO = "auto"
# From 10 000 frames on, M-TIP was hardly better than EMC, in twice the time.  Photons per frame: M-TIP was
# better at 1 000, and claimed too much at 300.
MOST_FRAMES, FEWEST_PHOTONS = 3000, 600
# Particles with a symmetry of at least this order are nearly round.
ROUND = 12
# Number of frames whose photons are counted.
_LOOKED_AT = 200


class Choice(NamedTuple):
    """A method by its name, and why it was chosen, in one sentence."""

    name: str
    because: str


def choose_method(source: Source, settings: EmcSettings) -> Choice:
    """The method for these data.

    settings : of either method; only symmetry and number of models count.
    """
    n_frames = source.n_frames or 0
    if settings.models != 1:
        return Choice("emc", "EMC was chosen, because it separates several states.")
    if settings.given_group.order >= ROUND:
        return Choice("emc", f"EMC was chosen: a particle of symmetry {settings.symmetry} is nearly round.")
    if n_frames > MOST_FRAMES:
        return Choice("emc", f"EMC was chosen: {n_frames:,} frames are more than {MOST_FRAMES:,}.")
    photons = photons_per_frame(source)
    if photons < FEWEST_PHOTONS:
        return Choice(
            "emc", f"EMC was chosen: {photons:,.0f} photons per frame are less than {FEWEST_PHOTONS}."
        )
    what = (
        f"{n_frames:,} frames (at most {MOST_FRAMES:,}) of {photons:,.0f} photons (at least {FEWEST_PHOTONS})"
    )
    return Choice("mtip", f"M-TIP was chosen: from {what} it gives a better result than EMC.")


def photons_per_frame(source: Source) -> float:
    """The mean number of photons on usable pixels, over a few frames from all parts of the data."""
    blocks = blocks_to_look_at(source.n_frames or 0, _LOOKED_AT, block=20)
    photons = summarise(source, (source.read(block) for block in blocks)).photons
    return float(photons.mean()) if len(photons) else 0.0


def shared_settings(settings: Any) -> EmcSettings:
    """The settings that both methods share, from a section, all sections joined, or a dictionary."""
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
