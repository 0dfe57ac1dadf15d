"""What a run has found out about each frame so far."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.ranks.comm import Comm, complete_rows
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.posterior import Posterior
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.search import Grid
from orienteer.reconstruction.states.posterior import StatePosterior

_COLUMNS = (
    "quaternion",
    "model",
    "confidence",
    "perplexity",
    "log_likelihood",
    "log_evidence",
    "expected",
    "merged",
    "weight",
    "state_probability",
)


class FrameTable:
    """One row per frame, in the order of the data.

    quaternion : (N, 4) the likeliest pose of that model.
    model : (N,) int64, the likeliest model; -1: junk.
    confidence : (N,) exp(-entropy) of the posterior, 1 when there is one pose only.
    perplexity : (N,) effective number of poses that the frame is spread over.
    log_likelihood : (N,) ln P(frame | likeliest pose), in nats, on the scored pixels.
    log_evidence : (N,) ln P(frame), over all poses together; see ``Posterior.untempered_evidence``.
    expected : (N,) photons that its poses expect on the scored pixels at unit fluence.
    merged : (N,) bool, whether the frame was merged in this stage.
    weight : (N,) how likely the frame shows the particle: how much it counts in the merge.
    state_probability : (N, M) how likely it shows each model, in any pose; what is missing from 1 is junk.
    """

    def __init__(self, n_frames: int, n_models: int = 1) -> None:
        self.quaternion = np.tile(np.array([1.0, 0.0, 0.0, 0.0]), (n_frames, 1))
        self.model = np.zeros(n_frames, dtype=np.int64)
        self.confidence, self.perplexity = np.zeros(n_frames), np.ones(n_frames)
        self.log_likelihood, self.log_evidence = np.zeros(n_frames), np.zeros(n_frames)
        self.weight = np.ones(n_frames)
        self.take_states(n_models)
        self.forget_merge()

    def take_states(self, n_models: int) -> None:
        """Go on with so many models, all of them as likely."""
        self.state_probability = np.full((len(self.model), n_models), 1 / n_models)

    def forget_merge(self) -> None:
        """A new stage begins: what was expected on other pixels says nothing now."""
        self.expected = np.zeros(len(self.model))
        self.merged = np.zeros(len(self.model), dtype=bool)

    @property
    def states_per_frame(self) -> float:
        """Effective number of models that a frame is spread over, as :class:`Posterior` has it of poses."""
        p = self.state_probability
        return float(np.exp(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean()))

    def mean_perplexity(self, frames: NDArray[np.bool_]) -> float:
        """Effective number of poses that these frames (N,) are spread over, their geometric mean; 1: none."""
        return float(np.exp(np.log(self.perplexity[frames]).mean())) if frames.any() else 1.0

    @property
    def shown(self) -> NDArray[np.int64]:
        """The model that a frame shows, (N,); -1: none."""
        return np.where(self.weight < 0.5, -1, self.model)

    def note(
        self, grid: Grid, likelihood: Likelihood, batch: Batch, posterior: Posterior, beta: Array,
        states: StatePosterior | None = None,
    ) -> None:  # fmt: skip
        """Write down the posteriors of a batch.

        beta : (D,) the inverse temperatures that they have.
        states : of several models; without it the model is that of the likeliest pose.
        """
        places = batch.places
        row = to_numpy(posterior.best_row)
        rows, K = grid.rows, len(grid.poses)
        is_junk = row >= len(rows) - rows.n_junk
        if states is not None:
            probability = to_numpy(states.probability)
            self.state_probability[places] = probability.T
            state = probability.argmax(axis=0)
            row = to_numpy(states.best_row)[state, np.arange(len(state))]
            is_junk = probability.max(axis=0) < 1 - probability.sum(axis=0)
        self.quaternion[places] = grid.quaternions[np.where(is_junk, 0, row % K)]
        self.model[places] = np.where(is_junk, -1, row // K)
        self.perplexity[places] = to_numpy(posterior.perplexity)
        self.confidence[places] = np.exp(-to_numpy(posterior.entropy))
        constants = self.constants(likelihood, batch)
        self.log_likelihood[places] = to_numpy(posterior.best_score) + constants
        evidence = posterior.untempered_evidence(beta, rows.log_prior, rows.n_junk)
        self.log_evidence[places] = to_numpy(evidence) + constants

    def keep_known(self, places: NDArray[np.int64], known: NDArray[np.float64]) -> None:
        """Poses that were given are as they were: known (N, 4), NaN where there is none."""
        own = known[places]
        self.quaternion[places] = np.where(np.isfinite(own), own, self.quaternion[places])

    @staticmethod
    def constants(likelihood: Likelihood, batch: Batch) -> NDArray[np.float64]:
        """What is left out of the scores of a batch because it is the same for all poses, (D,) in nats."""
        constants = []
        for group in batch.groups:
            own = batch.fluence[group.columns]
            fluence = group.fluence if likelihood.needs_fluence_groups else own
            constants.append(to_numpy(likelihood.frame_constant(group.frames, fluence)))
        return np.concatenate(constants)

    def note_merge(self, batch: Batch, expected: Array) -> None:
        """Write down that a batch was merged, and how many photons its poses expect."""
        self.expected[batch.places] = to_numpy(expected)
        self.merged[batch.places] = True

    def complete(self, comm: Comm, places: NDArray[np.int64]) -> None:
        """Take the rows that other ranks have written; places : (n,) rows of this rank alone."""
        complete_rows(comm, places, *(getattr(self, name) for name in _COLUMNS if name != "weight"))

    def state(self) -> dict[str, NDArray[Any]]:
        """All columns by name, as they are now."""
        return {f"frames/{name}": getattr(self, name).copy() for name in _COLUMNS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in _COLUMNS:
            # A state of before may lack what only tells when a stage is over.
            found = state.get(f"frames/{name}", getattr(self, name))
            setattr(self, name, np.array(found, dtype=getattr(self, name).dtype))
