"""How many states: a run begins with one model, and splits it as often as it is told, or as the data ask for.

Whether one state more is in the data, frames tell that no model has seen, the sentinels.  With many models
each has fewer frames and more noise, and foretells them less well; with too few, some fit none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.expectation import Expander, expect

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc
    from orienteer.reconstruction.settings import EmcSettings

# Models that are tried where nobody says how many, at most.
_MOST = 6
# Sentinels that can decide; standard errors that a gain must be above nothing.
_FEWEST, _ERRORS = 10, 3.0
# Share of the frames below which a state is empty, and how often such a one is begun again.
_EMPTY, _TRIES = 0.005, 2

Verdict = Literal["split", "begin again", "keep", "take back"]


def most_models(settings: "EmcSettings") -> int:
    """Models that a run may come to have."""
    return _MOST if settings.models == "auto" else settings.models


@dataclass
class Growth:
    """How the number of models grows, from 1 on.  All of it is part of a checkpoint.

    wanted : how many; "auto": as many as the sentinels can tell apart.
    verdict : what is to be done, after all models have settled.
    evidence : (S,) ln P of each sentinel by the models that there are.
    before : what was learnt with one model less, its evidence among it.
    n_tries : how often a state that lost its frames was begun again.
    """

    wanted: int | Literal["auto"]
    verdict: Verdict = "keep"
    evidence: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    before: dict[str, Any] = field(default_factory=dict)
    n_tries: int = 0

    def judge(self, n_models: int, evidence: NDArray[np.float64], occupancy: NDArray[np.float64]) -> str:
        """Decide what is to be done; one sentence about it.

        evidence : (S,) as above; occupancy : (M,) shares of the frames.
        """
        self.evidence = evidence
        if self.wanted != "auto":
            if n_models > 1 and occupancy.min() < _EMPTY and self.n_tries < _TRIES:
                self.verdict = "begin again"
                return "A state has lost all its frames and begins again, as another part of the rest."
            self.verdict = "split" if n_models < self.wanted else "keep"
            return "" if self.verdict == "keep" else f"State {n_models + 1} begins."
        if len(evidence) < _FEWEST:
            self.verdict = "keep"
            return f"{len(evidence)} sentinels are too few to tell whether there are more states than one."
        if n_models == 1:
            self.verdict = "split"
            return "Are there two states?"
        gains = evidence - self.before["evidence"]
        gain, error = float(gains.mean()), float(gains.std() / np.sqrt(len(gains) - 1))
        told = f"frames that no model has seen become likelier by {gain:.2g} +- {error:.1g} nats"
        if gain <= _ERRORS * error:
            self.verdict = "take back"
            count = "state is" if n_models == 2 else "states are"
            return f"{n_models - 1} {count} enough: with {n_models}, {told}."
        self.verdict = "split" if n_models < _MOST else "keep"
        return f"There are {n_models} states or more: {told}."

    def state(self) -> dict[str, Any]:
        """All of it by name."""
        before = {f"growth/before/{name}": value for name, value in self.before.items()}
        own = {"verdict": self.verdict, "evidence": self.evidence, "n_tries": self.n_tries}
        return {**before, **{f"growth/{name}": value for name, value in own.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.verdict, self.n_tries = state["growth/verdict"], int(state["growth/n_tries"])
        self.evidence = np.array(state["growth/evidence"], dtype=np.float64)
        start = "growth/before/"
        self.before = {
            name.removeprefix(start): value for name, value in state.items() if name.startswith(start)
        }


def held_out_evidence(emc: "Emc") -> NDArray[np.float64]:
    """ln P of every sentinel, (S,) in nats: over all poses of all models, mean over the halves."""
    work, likelihood = emc.work, emc.noise.likelihood(emc.work)
    found = []
    for models in emc.models:
        expander = Expander(models, work.points, work.junk(emc.junk))
        own = np.zeros(len(emc.sentinel))
        for batch in work.batches("sentinel", emc.fluence):
            store = ScoreStore(len(work.rows), len(batch), emc.device, emc.settings.kept_mass)
            posterior = expect(likelihood, expander, work.rows, batch, 1.0, store)
            own[batch.places] = to_numpy(posterior.log_evidence) + emc.table.constants(likelihood, batch)
        found.append(own[emc.sentinel])
    return np.asarray(np.mean(found, axis=0))
