"""What the model of a half has said, kept beside its run, so that nobody has to ask it again.

To ask a half means to read all its frames again and to orient the sentinels, which takes longer than anything
else that is done with it after its end.  An answer holds for the very run, iteration and sentinels.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from orienteer.compute.atomic import atomic_path
from orienteer.validate.sentinel_poses import HalfModel

if TYPE_CHECKING:
    from orienteer.run.run import Run
    from orienteer.source.base import Source

FILE = "sentinels.npz"


def keep_model(run: Run, sentinels: Source, model: HalfModel) -> None:
    """Keep what a half that has come to its end says."""
    with atomic_path(run.path / FILE) as place, place.open("wb") as file:
        np.savez(
            file, **_question(run, sentinels), frames=model.frames, diameter_A=model.diameter_A,
            edge_inv_A=model.edge_inv_A, is_flat=model.is_flat, poses=model.poses,
        )  # fmt: skip


def kept_model(run: Run, sentinels: Source) -> HalfModel | None:
    """What a half has said about these sentinels; None where it has not, or is another one since."""
    place = Path(run.path / FILE)
    if not place.exists():
        return None
    try:
        with np.load(place, allow_pickle=False) as told:
            asked = _question(run, sentinels)
            if not all(np.array_equal(told[name], value) for name, value in asked.items()):
                return None
            return HalfModel(
                int(told["frames"]), float(told["diameter_A"]), float(told["edge_inv_A"]),
                bool(told["is_flat"]), np.asarray(told["poses"], np.float64),
            )  # fmt: skip
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None  # cut off or of another version: it is asked again


def _question(run: Run, sentinels: Source) -> dict[str, Any]:
    """What an answer belongs to."""
    return {
        "run_id": np.array(run.described["run_id"]),
        "iteration": np.array(run.iteration),
        "sentinel_ids": np.asarray(sentinels.event_ids()),
    }
