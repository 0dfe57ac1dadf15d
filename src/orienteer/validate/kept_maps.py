"""The map of a half, stored in its folder until the run of all frames has begun with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from orienteer.compute.atomic import atomic_path
from orienteer.reconstruction.handing_over import LearntMap

if TYPE_CHECKING:
    from pathlib import Path

    from orienteer.reconstruction.emc import Emc
    from orienteer.run.run import Run

FILE = "map.npz"


@dataclass(frozen=True, eq=False)
class HalfMap:
    """What a half has learnt.  scored_inv_A : |q| up to which pixels have oriented its frames."""

    learnt: LearntMap
    scored_inv_A: float

    @classmethod
    def of(cls, emc: Emc) -> HalfMap:
        """The map of a finished reconstruction."""
        return cls(LearntMap.of(emc), emc.work.stage.scored_inv_A)


def place_of_map(run: Run) -> Path:
    """The file of the map of a half."""
    return run.path / FILE


def keep_map(run: Run, emc: Emc) -> None:
    """Store the map of a finished half."""
    found = HalfMap.of(emc)
    with atomic_path(place_of_map(run)) as place, place.open("wb") as file:
        np.savez(
            file, run_id=np.array(run.described["run_id"]), scored_inv_A=found.scored_inv_A,
            **found.learnt.state(),
        )  # fmt: skip


def kept_map(run: Run) -> HalfMap | None:
    """The stored map of a half; None if there is none."""
    place = place_of_map(run)
    if not place.exists():
        return None
    try:
        with np.load(place, allow_pickle=False) as told:
            if str(told["run_id"]) != run.described["run_id"]:
                return None
            return HalfMap(LearntMap.from_state(told), float(told["scored_inv_A"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None  # an incomplete file: the map is made again
