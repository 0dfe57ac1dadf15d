"""Several states: which model of each half is which state of the run, and how far each state is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from orienteer.compare.comparison import compare
from orienteer.validate.half_maps import HalfMaps
from orienteer.validate.intensities import IntensityAgreement

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume


@dataclass(frozen=True, eq=False)
class StateAgreement:
    """How far two halves agree about one state of a run.

    state : counted from 1, as in the run; models : of it in each half, counted from 1.
    share : of the frames of the run that show it.
    maps : densities of the halves and their Fourier shell correlation; None where one was not phased.
    intensity : agreement of the halves; whole : of the run with the half less like it.
    """

    state: int
    models: tuple[int, int]
    share: float
    maps: HalfMaps | None
    intensity: IntensityAgreement
    whole: IntensityAgreement

    @property
    def densities_A(self) -> float | None:
        """To where the Fourier shell correlation of the densities stays above 0.143; None: nowhere."""
        return None if self.maps is None else self.maps.resolutions["0.143"].resolution_A

    @property
    def resolution_A(self) -> float | None:
        """To where densities and intensities agree; None: nowhere."""
        densities_A, speckles_A = self.densities_A, self.intensity.agrees_to_A
        return None if densities_A is None or speckles_A is None else max(densities_A, speckles_A)

    @property
    def words(self) -> str:
        """The claim about this state, to stand in a sentence.

        A share of the frames that is no state of its own looks like the others in both halves.
        """
        found = self.resolution_A
        return f"state {self.state} nowhere" if found is None else f"state {self.state} to {found:.3g} A"

    def describe(self) -> dict[str, object]:
        """As ``validation.json`` has it."""
        return {
            "state": self.state,
            "models": list(self.models),
            "share": self.share,
            "resolution_A": self.resolution_A,
            "densities_A": self.densities_A,
            "speckles_A": self.intensity.agrees_to_A,
            "whole_A": self.whole.agrees_to_A,
        }


def pair_states(run: Sequence[Volume], half: Sequence[Volume]) -> list[int]:
    """The model of a half, from 0, that is most like each state of the run, each model at most once.

    States of which a half has none, because it has come to fewer models, share that of the state nearest.
    """
    if len(run) == len(half) == 1:
        return [0]
    alike = likenesses(run, half)
    states, models = linear_sum_assignment(-alike)
    found = dict(zip(states.tolist(), models.tolist(), strict=True))
    return [found.get(state, int(alike[state].argmax())) for state in range(len(run))]


def likenesses(run: Sequence[Volume], half: Sequence[Volume]) -> NDArray[np.float64]:
    """(S, M) mean correlation of the speckles of every state with every model, turned onto each other."""
    return np.array([[compare(state, model).correlation for model in half] for state in run])


def only_state(columns: dict[str, NDArray[np.generic]], state: int) -> dict[str, NDArray[np.generic]]:
    """The table of frames of a run in which only those of one state, from 0, show the particle."""
    model = np.asarray(columns["model"])
    return {**columns, "model": np.where(model == state, model, -1)}
