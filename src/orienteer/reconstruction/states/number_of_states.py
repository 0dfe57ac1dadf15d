"""How many states: a run begins with one model, and splits it as often as it is told, or as the data ask for.

Whether one state more is in the data, frames tell that no model has seen, the sentinels.  With many models
each has fewer frames and more noise, and foretells them less well; with too few, some fit none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.compute.ranks.comm import complete_rows
from orienteer.likelihood.base import Likelihood
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.refinement import local_scores, refine_poses
from orienteer.reconstruction.orienting.rows import RowSpace
from orienteer.reconstruction.states.fluence import fluence_in_state
from orienteer.reconstruction.states.summary import occupancy

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc
    from orienteer.reconstruction.settings import EmcSettings

# Models that are tried where nobody says how many, at most.
_MOST = 6
# Sentinels that can decide; standard errors that a gain must be above nothing, and a loss without a state.
# That few sentinels show a state, and lose much, makes the loss of all of them scatter.
FEWEST_SENTINELS, _ERRORS, _LOSS_ERRORS = 10, 3.0, 2.0
# Share of the frames below which a state is empty, and how often such a one is begun again.
_EMPTY, _TRIES = 0.005, 2
# Nats that a sentinel loses without its state, at most; and that all of them must lose in the mean.
LARGEST_LOSS, _LEAST_LOSS = 50.0, 0.1

Verdict = Literal["split", "begin again", "keep", "take back"]


def mean_and_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean of (S,) and its standard error."""
    return float(values.mean()), float(values.std() / np.sqrt(max(len(values) - 1, 1)))


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

    def judge(
        self, held_out: "HeldOut | None", occupancy: NDArray[np.float64],
        gain_of_split: Callable[[], float] | None = None,
    ) -> str:  # fmt: skip
        """Decide what is to be done, after all models have settled; one sentence about it.

        held_out : what the sentinels say; not needed where the number of models is given.
        occupancy : (M,) shares of the frames.
        gain_of_split : by how much frames become likelier, at the poses that they have, as one state more.
        """
        n_models = len(occupancy)
        if self.wanted != "auto":
            if n_models > 1 and occupancy.min() < _EMPTY and self.n_tries < _TRIES:
                self.verdict = "begin again"
                return "A state has lost all its frames and begins again, as another part of the rest."
            self.verdict = "split" if n_models < self.wanted else "keep"
            return "" if self.verdict == "keep" else f"State {n_models + 1} begins."
        assert held_out is not None
        self.evidence = held_out.evidence
        if len(self.evidence) < FEWEST_SENTINELS:
            self.verdict = "keep"
            return f"{len(self.evidence)} sentinels are too few to tell whether there is more than one state."
        if n_models == 1:
            self.verdict = "split"
            return "Are there two states?"
        gain, error = mean_and_error(self.evidence - self.before["evidence"])
        told = f"frames that no model has seen become likelier by {gain:.2g} +- {error:.1g} nats"
        losses = [mean_and_error(loss) for loss in held_out.losses.T]
        is_missed = all(loss > max(_LEAST_LOSS, _LOSS_ERRORS * its_error) for loss, its_error in losses)
        if gain <= _ERRORS * error or not is_missed:
            self.verdict = "take back"
            count = "state is" if n_models == 2 else "states are"
            least = min(losses)[0]
            missed = "" if is_missed else f", and without one of them less likely by {least:.1g} only"
            return f"{n_models - 1} {count} enough: with {n_models}, {told}{missed}."
        # One model of a mixture gives its frames poses that may hide it: only from two on this is asked.
        gains_nothing = gain_of_split is not None and gain_of_split() <= 0
        self.verdict = "keep" if n_models == _MOST or gains_nothing else "split"
        if gains_nothing:
            return f"There are {n_models} states: {told}, and no state becomes likelier as two."
        return f"There are {n_models} states or more: {told}."

    def expected(self, n_models: int) -> int:
        """Models that there will be in the end, where there are so many now; of auto, one more is tried."""
        return min(n_models + 1, _MOST) if self.wanted == "auto" else self.wanted

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


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What frames that no model has seen say about the models.

    evidence : (S,) ln P of each sentinel, over all poses of all models, mean over the halves.
    losses : (S, M) how much less likely it becomes without each of the models, up to a limit.
    """

    evidence: NDArray[np.float64]
    losses: NDArray[np.float64]


def ask_sentinels(emc: "Emc") -> HeldOut:
    """Evidence of the models that there are, in nats."""
    work, likelihood = emc.work, emc.noise.likelihood(emc.work)
    found = np.zeros((emc.n_halves, len(emc.sentinel), 1 + emc.n_models))
    if not emc.sentinel.any():
        return HeldOut(np.zeros(0), np.zeros((0, emc.n_models)))
    for own, models in zip(found, emc.models, strict=True):
        expander = work.expander(models, emc.junk)
        by_state = np.full((emc.n_models + 1, len(emc.sentinel)), -np.inf)
        for m in range(emc.n_models):
            for batch in work.regrouped("sentinel", fluence_in_state(emc, m)):
                constants = emc.table.constants(likelihood, batch)
                by_state[m, batch.places] = constants + _log_evidence(emc, likelihood, expander, batch, m)
        if work.rows.n_junk:
            for batch in work.batches("sentinel", emc.fluence):
                constants = emc.table.constants(likelihood, batch)
                junk = _log_evidence_of_junk(emc, likelihood, expander, batch)
                by_state[-1, batch.places] = constants + junk
        sentinels = emc.frames.own_of(work.frames_of("sentinel"))
        complete_rows(work.mesh.all, sentinels, *by_state)
        whole = np.logaddexp.reduce(by_state, axis=0)
        own[:, 0] = whole
        for m in range(emc.n_models):
            rest = np.logaddexp.reduce(np.delete(by_state, m, axis=0), axis=0)
            # The others become as much more frequent.
            rest -= np.log(max(1 - occupancy(emc)[m], 1e-12))
            lost = np.full(len(rest), LARGEST_LOSS)
            own[:, 1 + m] = np.subtract(whole, rest, out=lost, where=np.isfinite(rest)).clip(
                None, LARGEST_LOSS
            )
    mean = found[:, emc.sentinel].mean(axis=0)
    return HeldOut(mean[:, 0], mean[:, 1:])


def _log_evidence(
    emc: "Emc", likelihood: Likelihood, expander: Expander, batch: Batch, state: int
) -> NDArray[np.float64]:
    """ln P of the frames of a batch in one state, but for a constant, (D,).

    Two models of one state that lie half a step of the grid apart fit more poses than one does.  So the
    evidence of the grid grows by what the best pose gains when it leaves the grid.
    """
    work, K, tile_rows = emc.work, len(emc.work.poses), emc.plan.tile_rows
    # Each state by itself: beside another that fits far better, its own probabilities would all be 0.
    own = expander.of_model(state)
    log_prior = work.rows.log_prior[state * K : (state + 1) * K]
    rows = RowSpace(work.poses, 1, log_prior, tile_rows=work.rows.tile_rows)
    store = ScoreStore(K, len(batch), emc.device, comm=work.mesh.poses)
    found = expect(likelihood, own, rows, batch, 1.0, store)
    begun = work.quaternions[to_numpy(found.best_row)]
    climbed = refine_poses(
        likelihood, expander, batch, np.arange(len(batch)), np.full(len(batch), state), begun,
        covering_bound_deg(work.stage.first_level), tile_rows=tile_rows,
    )  # fmt: skip
    poses = emc.xp.asarray(begun)[:, None]
    on_grid = local_scores(likelihood, expander, batch, climbed.frames, climbed.model, poses, tile_rows)
    return np.asarray(to_numpy(found.log_evidence) + to_numpy(climbed.score) - to_numpy(on_grid)[:, 0])


def _log_evidence_of_junk(
    emc: "Emc", likelihood: Likelihood, expander: Expander, batch: Batch
) -> NDArray[np.float64]:
    """ln P of the frames of a batch in any of the junk classes, but for a constant, (D,)."""
    work = emc.work
    rows = RowSpace(work.poses, 0, work.rows.log_prior[-work.rows.n_junk :], work.rows.n_junk)
    store = ScoreStore(len(rows), len(batch), emc.device, comm=work.mesh.poses)
    found = expect(likelihood, expander, rows, batch, 1.0, store)
    return np.asarray(to_numpy(found.log_evidence))
