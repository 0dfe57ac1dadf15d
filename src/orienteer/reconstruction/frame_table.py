"""What a run has found out about each frame so far."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.posterior import Posterior
from orienteer.reconstruction.expectation import Batch
from orienteer.reconstruction.search import Grid

_COLUMNS = (
    "quaternion",
    "model",
    "confidence",
    "perplexity",
    "log_likelihood",
    "expected",
    "merged",
    "weight",
)


class FrameTable:
    """One row per frame, in the order of the data.

    quaternion : (N, 4) the likeliest pose.
    model : (N,) int64, the model of that pose; -1: junk.
    confidence : (N,) exp(-entropy) of the posterior, 1 when there is one pose only.
    perplexity : (N,) effective number of poses that the frame is spread over.
    log_likelihood : (N,) ln P(frame | likeliest pose), in nats, on the scored pixels.
    expected : (N,) photons that its poses expect on the scored pixels at unit fluence.
    merged : (N,) bool, whether the frame was merged in this stage.
    weight : (N,) how likely the frame shows the particle: how much it counts in the merge.
    """

    def __init__(self, n_frames: int) -> None:
        self.quaternion = np.tile(np.array([1.0, 0.0, 0.0, 0.0]), (n_frames, 1))
        self.model = np.zeros(n_frames, dtype=np.int64)
        self.confidence, self.perplexity = np.zeros(n_frames), np.ones(n_frames)
        self.log_likelihood = np.zeros(n_frames)
        self.weight = np.ones(n_frames)
        self.forget_merge()

    def forget_merge(self) -> None:
        """A new stage begins: what was expected on other pixels says nothing now."""
        self.expected = np.zeros(len(self.model))
        self.merged = np.zeros(len(self.model), dtype=bool)

    @property
    def shown(self) -> NDArray[np.int64]:
        """The model that a frame shows, (N,); -1: none."""
        return np.where(self.weight < 0.5, -1, self.model)

    def note(self, grid: Grid, likelihood: Likelihood, batch: Batch, posterior: Posterior) -> None:
        """Write down the posteriors of a batch."""
        places = batch.places
        row = to_numpy(posterior.best_row)
        rows, K = grid.rows, len(grid.poses)
        is_junk = row >= len(rows) - rows.n_junk
        self.quaternion[places] = grid.quaternions[np.where(is_junk, 0, row % K)]
        self.model[places] = np.where(is_junk, -1, row // K)
        self.perplexity[places] = to_numpy(posterior.perplexity)
        self.confidence[places] = np.exp(-to_numpy(posterior.entropy))
        self.log_likelihood[places] = to_numpy(posterior.best_score) + self.constants(likelihood, batch)

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

    def state(self) -> dict[str, NDArray[Any]]:
        """All columns by name, as they are now."""
        return {f"frames/{name}": getattr(self, name).copy() for name in _COLUMNS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in _COLUMNS:
            setattr(self, name, np.array(state[f"frames/{name}"], dtype=getattr(self, name).dtype))
