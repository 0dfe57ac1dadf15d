"""The findings of a half, with its poses of the sentinels, stored in its folder to be computed only once.

To compute them later, all frames of the half would have to be read again and the sentinels oriented, which
takes longer than anything else after its end.  Stored findings are valid only for the same run, iteration and
sentinels.
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
    """Store the findings of a finished half."""
    with atomic_path(run.path / FILE) as place, place.open("wb") as file:
        np.savez(
            file, **_question(run, sentinels), frames=model.frames, diameter_A=model.diameter_A,
            edge_inv_A=model.edge_inv_A, is_flat=model.is_flat, poses=model.poses,
        )  # fmt: skip


def kept_model(run: Run, sentinels: Source) -> HalfModel | None:
    """The stored findings of a half with these sentinels; None if there are none, or the half has changed."""
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
        return None  # an incomplete file, or of another version: the half orients the sentinels again


def _question(run: Run, sentinels: Source) -> dict[str, Any]:
    """The run, iteration and sentinels for which findings are valid."""
    return {
        "run_id": np.array(run.described["run_id"]),
        "iteration": np.array(run.iteration),
        "sentinel_ids": np.asarray(sentinels.event_ids()),
    }
