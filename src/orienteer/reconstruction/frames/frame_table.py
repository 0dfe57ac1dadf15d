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

    quaternion : (N, 4) the likeliest pose in the likeliest model.
    model : (N,) int64, the likeliest model; -1: junk.
    confidence : (N,) exp(-entropy) of the posterior; 1 if it holds a single pose.
    perplexity : (N,) effective number of poses that the frame is spread over.
    log_likelihood : (N,) ln P(frame | likeliest pose), in nats, on the scored pixels.
    log_evidence : (N,) ln P(frame), over all poses together; see ``Posterior.untempered_evidence``.
    expected : (N,) photons that its poses predict on the scored pixels at unit fluence.
    merged : (N,) bool, whether the frame was merged in this stage.
    weight : (N,) probability that the frame shows the particle: its weight in the merge.
    state_probability : (N, M) probability of each model, over all poses; the rest to 1 is junk.
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
        """Set the number of models, and make all of them equally likely."""
        self.state_probability = np.full((len(self.model), n_models), 1 / n_models)

    def forget_merge(self) -> None:
        """Begin a stage: the photons that were predicted before were for other pixels."""
        self.expected = np.zeros(len(self.model))
        self.merged = np.zeros(len(self.model), dtype=bool)

    @property
    def states_per_frame(self) -> float:
        """Effective number of models that a frame is spread over, the perplexity of its states."""
        p = self.state_probability
        return float(np.exp(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean()))

    def mean_perplexity(self, frames: NDArray[np.bool_]) -> float:
        """Geometric mean of the perplexities of these frames (N,); 1 if there are none."""
        return float(np.exp(np.log(self.perplexity[frames]).mean())) if frames.any() else 1.0

    @property
    def shown(self) -> NDArray[np.int64]:
        """The model that each frame shows, (N,); -1: none."""
        return np.where(self.weight < 0.5, -1, self.model)

    def note(
        self, grid: Grid, likelihood: Likelihood, batch: Batch, posterior: Posterior, beta: Array,
        states: StatePosterior | None = None,
    ) -> None:  # fmt: skip
        """Write the posteriors of a batch into the table.

        beta : (D,) their inverse temperatures.
        states : probabilities of several models; None: the model is that of the likeliest pose.
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
        """Put given poses back into the table: known (N, 4), NaN for frames without one."""
        own = known[places]
        self.quaternion[places] = np.where(np.isfinite(own), own, self.quaternion[places])

    @staticmethod
    def constants(likelihood: Likelihood, batch: Batch) -> NDArray[np.float64]:
        """Terms that scores of a batch leave out because they are the same for all poses, (D,) in nats."""
        constants = []
        for group in batch.groups:
            own = batch.fluence[group.columns]
            fluence = group.fluence if likelihood.needs_fluence_groups else own
            constants.append(to_numpy(likelihood.frame_constant(group.frames, fluence)))
        return np.concatenate(constants)

    def note_merge(self, batch: Batch, expected: Array) -> None:
        """Note that a batch was merged, and how many photons its poses predict."""
        self.expected[batch.places] = to_numpy(expected)
        self.merged[batch.places] = True

    def complete(self, comm: Comm, places: NDArray[np.int64]) -> None:
        """Get the rows that other ranks have written; places : (n,) rows that belong to this rank alone."""
        complete_rows(comm, places, *(getattr(self, name) for name in _COLUMNS if name != "weight"))

    def state(self) -> dict[str, NDArray[Any]]:
        """All columns by name, as they are now."""
        return {f"frames/{name}": getattr(self, name).copy() for name in _COLUMNS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in _COLUMNS:
            # Older checkpoints may lack columns that only decide when a stage is over.
            found = state.get(f"frames/{name}", getattr(self, name))
            setattr(self, name, np.array(found, dtype=getattr(self, name).dtype))
