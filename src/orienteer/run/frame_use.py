"""How many frames of a run made its result, and how many did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orienteer.compute.words import counted

# From this share on, a run that leaves frames out says something about the data, or about itself.
_MANY = 0.2


@dataclass(frozen=True)
class FrameUse:
    """What became of the frames of a run.

    frames : in all.
    left_out : taken to show something else than the particle, or nothing.
    watched : oriented, but never merged, to judge the others by.
    """

    frames: int
    left_out: int
    watched: int

    @property
    def leaves_out_many(self) -> bool:
        """Whether so many were left out that it has to be said before all else."""
        return self.left_out > _MANY * self.frames

    @property
    def words(self) -> str:
        """What was left out, in one sentence; empty where nothing was.

        >>> FrameUse(1200, 703, 60).words
        '703 of 1,200 frames (59 %) were left out: they show something else than the particle, or nothing.'
        """
        if not self.left_out:
            return ""
        share = f"{100 * self.left_out / self.frames:.2g} %"
        which = f"{self.left_out:,} of {counted(self.frames, 'frame')} ({share}) were left out"
        return f"{which}: they show something else than the particle, or nothing."


def frame_use(columns: Mapping[str, Any]) -> FrameUse | None:
    """What the table of a run says of its frames; None where it does not say.

    columns : those of ``orientations.h5``: ``model`` (N,), -1 for a frame that shows none, ``sentinel`` (N,).
    """
    if "model" not in columns:
        return None
    model = np.asarray(columns["model"])
    watched = np.asarray(columns.get("sentinel", np.zeros(len(model)))).astype(bool)
    return FrameUse(len(model), int((model < 0).sum()), int(watched.sum()))
