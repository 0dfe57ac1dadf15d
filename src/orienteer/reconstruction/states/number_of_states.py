"""The number of states: a run begins with one model, and adds as many as are wanted or as the data need.

The sentinels, which no model has seen, decide whether the data hold another state.  With too many models,
each has fewer frames and more noise, and predicts the sentinels less well; with too few, some sentinels fit
none.
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

# Most models that are tried if their number is not given.
_MOST = 6
# Fewest sentinels that can decide.  Standard errors by which the gain of another state must be above 0, and
# the loss without any of the states.  (The loss scatters more, because few sentinels show a state and lose
# much.)
FEWEST_SENTINELS, _ERRORS, _LOSS_ERRORS = 10, 3.0, 2.0
# A state with less than this share of the frames is empty; how often an empty state begins again.
_EMPTY, _TRIES = 0.005, 2
# Most nats that a sentinel can lose without its state; least mean loss of all sentinels.
LARGEST_LOSS, _LEAST_LOSS = 50.0, 0.1

Verdict = Literal["split", "begin again", "keep", "take back"]


def mean_and_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean of (S,) and its standard error."""
    return float(values.mean()), float(values.std() / np.sqrt(max(len(values) - 1, 1)))


def most_models(settings: "EmcSettings") -> int:
    """The most models that a run may have."""
    return _MOST if settings.models == "auto" else settings.models


@dataclass
class Growth:
    """How the number of models grows from 1.  All of it is part of a checkpoint.

    wanted : the number of models; "auto": as many as the sentinels support.
    verdict : what to do next, decided after all models have settled.
    evidence : (S,) ln P of each sentinel with the present models.
    before : what was learnt with one model less, and its evidence.
    n_tries : how often a state that lost its frames has begun again.
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
        """Decide what to do after all models have settled; returns one sentence about it.

        held_out : the result of the sentinels; not needed if the number of models is given.
        occupancy : (M,) shares of the frames.
        gain_of_split : by how much the best split of a state makes frames likelier, at their present poses.
        """
        n_models = len(occupancy)
        if self.wanted != "auto":
            if n_models > 1 and occupancy.min() < _EMPTY and self.n_tries < _TRIES:
                self.verdict = "begin again"
                return "A state has lost its frames, and begins again with other frames of the rest."
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
        # A single model may have oriented the frames of a mixture so that it hides the states: so this counts
        # from two models on.
        gains_nothing = gain_of_split is not None and gain_of_split() <= 0
        self.verdict = "keep" if n_models == _MOST or gains_nothing else "split"
        if gains_nothing:
            return f"There are {n_models} states: {told}, and no further split makes frames likelier."
        return f"There are {n_models} states or more: {told}."

    def expected(self, n_models: int) -> int:
        """Predicted number of models at the end, given the present one; "auto" tries one more."""
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
    """How the models explain the sentinels, which no model has seen.

    evidence : (S,) ln P of each sentinel, over all poses of all models, mean over the halves.
    losses : (S, M) how much less likely each becomes without each of the models, up to a limit.
    """

    evidence: NDArray[np.float64]
    losses: NDArray[np.float64]


def ask_sentinels(emc: "Emc") -> HeldOut:
    """Evidence of the sentinels with the present models, in nats."""
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
            # Without this model, the others become more frequent.
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
    """ln P of the frames of a batch in one state, up to a constant, (D,).

    On the grid alone, two models of one state, half a step of the grid apart, would fit better than one.  So
    the gain of the best pose when it leaves the grid is added to the evidence.
    """
    work, K, tile_rows = emc.work, len(emc.work.poses), emc.plan.tile_rows
    # Each state is scored alone: beside one that fits far better, all its probabilities would round to 0.
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
    """ln P of the frames of a batch in any of the junk classes, up to a constant, (D,)."""
    work = emc.work
    rows = RowSpace(work.poses, 0, work.rows.log_prior[-work.rows.n_junk :], work.rows.n_junk)
    store = ScoreStore(len(rows), len(batch), emc.device, comm=work.mesh.poses)
    found = expect(likelihood, expander, rows, batch, 1.0, store)
    return np.asarray(to_numpy(found.log_evidence))
