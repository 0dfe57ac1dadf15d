"""How many frames of a run its result was made from, and how many were left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orienteer.compute.words import counted

# If more than this share is left out, something may be wrong with the data or with the run.
_MANY = 0.2


@dataclass(frozen=True)
class FrameUse:
    """How the frames of a run were used.

    frames : all of them.
    left_out : frames judged to show something else than the particle, or nothing.
    watched : sentinels, which are oriented but never merged, to test the models.
    """

    frames: int
    left_out: int
    watched: int

    @property
    def leaves_out_many(self) -> bool:
        """Whether so many were left out that a report must say so first."""
        return self.left_out > _MANY * self.frames

    @property
    def words(self) -> str:
        """How many frames were left out, in one sentence; empty if none.

        >>> FrameUse(1200, 703, 60).words
        '703 of 1,200 frames (59 %) were left out: they show something else than the particle, or nothing.'
        """
        if not self.left_out:
            return ""
        share = f"{100 * self.left_out / self.frames:.2g} %"
        which = f"{self.left_out:,} of {counted(self.frames, 'frame')} ({share}) were left out"
        return f"{which}: they show something else than the particle, or nothing."


def frame_use(columns: Mapping[str, Any]) -> FrameUse | None:
    """The use of frames, from the table of a run; None if it has no column ``model``.

    columns : of ``orientations.h5``: ``model`` (N,), -1 for a frame that shows none, and ``sentinel`` (N,).
    """
    if "model" not in columns:
        return None
    model = np.asarray(columns["model"])
    watched = np.asarray(columns.get("sentinel", np.zeros(len(model)))).astype(bool)
    return FrameUse(len(model), int((model < 0).sum()), int(watched.sum()))
