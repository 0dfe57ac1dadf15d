"""Several states: which model of each half is which state of the run, and how well each state is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from orienteer.compare.comparison import compare
from orienteer.validate.density_agreement import DensityAgreement, words_of_density
from orienteer.validate.half_maps import HalfMaps
from orienteer.validate.intensities import IntensityAgreement

if TYPE_CHECKING:
    from orienteer.volume.volume import Volume

# The models of the same state in both halves must differ by less than this share of the difference to other
# states.  Two models of the same true state that differ only by noise do not pass: within a half they differ
# as much as between the halves.
_CLOSER = 0.9


@dataclass(frozen=True, eq=False)
class StateAgreement:
    """How far two halves agree about one state of a run.

    state : counted from 1, as in the run; models : its number in each half, from 1, None: not found there.
    share : of the frames of the run that show it.
    maps : densities of the halves and their Fourier shell correlation; None if one was not phased.
    intensity : agreement of the halves; whole : of the run with the half that agrees less.
    density : agreement of the density of the run with that of a half; None if the run has none of this state.
    is_distinct : whether its models in both halves are closer to each other than to any other model.
    """

    state: int
    models: tuple[int | None, int | None]
    share: float
    maps: HalfMaps | None
    intensity: IntensityAgreement
    whole: IntensityAgreement
    density: DensityAgreement | None = None
    is_distinct: bool = True

    @classmethod
    def absent(cls, state: int, own: Sequence[int | None], share: float, diameter_A: float) -> StateAgreement:
        """A state of the run that a half lacks.  state : counted from 0; own : its models, counted from 0."""
        first, second = (None if model is None else model + 1 for model in own)
        q_inv_A = np.arange(3) / diameter_A
        nothing = IntensityAgreement(np.array([1.0, 0, 0, 0]), q_inv_A, np.zeros(3), diameter_A)
        return cls(state + 1, (first, second), share, None, nothing, nothing, is_distinct=False)

    @property
    def is_found(self) -> bool:
        """Whether both halves have found this state, distinct from their other states."""
        return self.is_distinct and self.resolution_A is not None

    @property
    def densities_A(self) -> float | None:
        """Resolution to which the Fourier shell correlation of densities is above 0.143; None: nowhere."""
        return None if self.maps is None else self.maps.resolutions["0.143"].resolution_A

    @property
    def resolution_A(self) -> float | None:
        """Resolution to which both densities and intensities agree; None: nowhere."""
        densities_A, speckles_A = self.densities_A, self.intensity.agrees_to_A
        return None if densities_A is None or speckles_A is None else max(densities_A, speckles_A)

    @property
    def words(self) -> str:
        """The claim about this state, as part of a sentence.

        A group of frames that is no state of its own looks like another state in both halves.
        """
        missing = [half for half, model in enumerate(self.models, 1) if model is None]
        found = self.resolution_A
        if missing:
            where = f"half {missing[0]}" if len(missing) == 1 else "either half"
            return f"state {self.state} not found in {where}"
        if found is None:
            return f"state {self.state} nowhere"
        doubt = "" if self.is_distinct else ", but no closer to itself than to another state"
        return f"state {self.state} to {found:.3g} A{doubt}"

    @property
    def doubt(self) -> str:
        """A sentence if the claim about this state does not hold for the density of the run; else empty."""
        return words_of_density(
            self.density, self.maps, self.resolution_A, self.whole.agrees_to_A, self.state
        )

    def describe(self) -> dict[str, object]:
        """The entries of ``validation.json``."""
        return {
            "state": self.state,
            "models": list(self.models),
            "share": self.share,
            "is_distinct": self.is_distinct,
            "resolution_A": self.resolution_A,
            "densities_A": self.densities_A,
            "speckles_A": self.intensity.agrees_to_A,
            "whole_A": self.whole.agrees_to_A,
            "density_A": None if self.density is None else self.density.agrees_to_A,
        }


def pair_states(run: Sequence[Volume], half: Sequence[Volume]) -> list[int | None]:
    """For each state of the run, the model of a half, from 0, that is most like it; each model at most once.

    None: the half has no model for that state, because it has found fewer models.
    """
    if len(run) == len(half) == 1:
        return [0]
    alike = likenesses(run, half)
    states, models = linear_sum_assignment(-alike)
    found = dict(zip(states.tolist(), models.tolist(), strict=True))
    return [found.get(state) for state in range(len(run))]


def is_distinct(alike: NDArray[np.float64], first: int, second: int) -> bool:
    """Whether two models of one state are clearly closer to each other than to models of other states.

    alike : (M, M') correlations between the models of both halves; ``first`` and ``second`` are two of them.
    """
    others = np.concatenate([np.delete(alike[first], second), np.delete(alike[:, second], first)])
    return not len(others) or bool(1 - alike[first, second] <= _CLOSER * (1 - others.max()))


def likenesses(run: Sequence[Volume], half: Sequence[Volume]) -> NDArray[np.float64]:
    """(S, M) mean correlation of the speckles of every state with every model, after the best rotation."""
    return np.array([[compare(state, model).correlation for model in half] for state in run])


def only_state(columns: dict[str, NDArray[np.generic]], state: int) -> dict[str, NDArray[np.generic]]:
    """The table of frames of a run; those of all states except one, from 0, are marked as no model."""
    model = np.asarray(columns["model"])
    return {**columns, "model": np.where(model == state, model, -1)}
