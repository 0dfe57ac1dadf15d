"""Annealing: the temperature is chosen so that the perplexity of the frames falls step by step.

Posteriors never become sharper than the grid can hold or than the likelihood itself.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.tempering import inverse_temperature_for_perplexity, inverse_temperatures
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.expectation import can_fuse, score_tile
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.workspace import Workspace

# At the beginning, every frame is spread over this share of all poses.
_FIRST_SHARE = 0.08
# After a split, when poses are nearly known, over this share.
_SPLIT_SHARE = 0.01
# The final perplexity: the neighbouring poses that interpolate between the points of the grid.
LAST_PERPLEXITY = 8.0
# Factor of the perplexity from iteration to iteration: while the agreement of the halves improves, and while
# it does not, because this temperature teaches little more.
_RATE, _QUICK_RATE = 0.85, 0.7
# Least rise of the mean correlation of the halves that counts as an improvement.
_SMALL_RISE = 0.005
# Frames that are scored to find the temperature.
_SAMPLED_FRAMES = 128
# To find the temperature, frames are scored at every n-th pose.  A frame must still be spread over at least
# so many of these; and n is at most so large.
_FEWEST_SAMPLED, _LARGEST_STRIDE = 30.0, 8


class Annealing:
    """The schedule of the perplexity, and the inverse temperature that follows it.

    target : perplexity of the next iteration; no frame has an inverse temperature above 1, the likelihood
        itself.
    iterations_done : iterations since the end of the schedule was reached.
    inverse : the last inverse temperature, of a frame of mean fluence; ``UNTEMPERED`` above all limits.
    is_untempered : whether it was 1 for all frames that were scored to find it.
    is_followed : whether the schedule depends on how far the halves agree.  With several states it does not,
        because halves may agree before the states are separated.  (In the one mixture that was tried, maps
        were worse after quick steps.)
    agreement : of the halves after the last iteration.
    rate : factor of the target from this iteration to the next.
    """

    def __init__(
        self, n_poses: int, *, is_first: bool = False, after_split: bool = False, is_followed: bool = False,
        equivalents: float = 1.0,
    ) -> None:  # fmt: skip
        """equivalents : equivalent poses of each orientation; at first a frame keeps neighbours of each."""
        share = _FIRST_SHARE if is_first else _SPLIT_SHARE if after_split else 0.0
        self.target = max(share * n_poses, equivalents * LAST_PERPLEXITY)
        self.iterations_done = 0
        self.inverse = 0.0
        self.is_untempered = False
        self.is_followed = is_followed
        self.agreement = -np.inf
        self.rate = _RATE

    @property
    def iterations_left(self) -> int:
        """Iterations until the last target is reached, mostly at the quick rate if that is allowed."""
        rate = _QUICK_RATE if self.is_followed else _RATE
        return max(0, int(np.ceil(np.log(self.target / LAST_PERPLEXITY) / -np.log(rate))))

    @property
    def stride(self) -> int:
        """The temperature is found from every stride-th pose, which is enough for wide posteriors."""
        return int(np.clip(self.target / _FEWEST_SAMPLED, 1, _LARGEST_STRIDE))

    def inverse_temperature(
        self, work: Workspace, likelihood: Likelihood, models: Array, fluence: NDArray[np.float64],
        weight: NDArray[np.float64], states_per_frame: float = 1.0,
    ) -> float:  # fmt: skip
        """Inverse temperature of a frame of mean fluence in the next iteration; lowers the target.

        weight : (N,) how much each frame counts; 0 if it shows something else.
        states_per_frame : models that a frame is spread over, with poses in each.
        It is found from the scores of a few frames; ``inverse_temperatures`` gives that of each frame.
        """
        stride = self.stride
        scores, sample = sample_scores(work, likelihood, models, fluence, weight, stride)
        says, brightness = say_in_temperature(sample), sample.fluence
        n_pose_rows = len(work.poses) * len(models[0])
        log_prior = work.rows.log_prior[:n_pose_rows].reshape(len(models[0]), -1)[:, ::stride].reshape(-1)
        self.inverse = inverse_temperature_for_perplexity(
            scores, log_prior, self.target * states_per_frame / stride,
            brightness=brightness if work.is_grouped else None, weights=says,
        )  # fmt: skip
        # The schedule also ends when all frames that have a say are at the limit: the least is 1 only then.
        own = inverse_temperatures(self.inverse, brightness[says > 0]) if work.is_grouped else None
        self.is_untempered = bool((self.inverse if own is None else own.min()) >= 1)
        if self.target <= LAST_PERPLEXITY or self.is_untempered:
            self.iterations_done += 1
        self.target = max(LAST_PERPLEXITY, self.target * self.rate)
        return self.inverse

    def follow(self, agreement: float) -> None:
        """Choose the next rate from the agreement of the halves after an iteration.

        Structure is found in the first iterations, or near the temperature at which it first shows.  Between
        them posteriors only become sharper, for which large steps are enough.
        """
        self.rate = _RATE if agreement - self.agreement >= _SMALL_RISE else _QUICK_RATE
        self.agreement = agreement

    def state(self) -> dict[str, Any]:
        """What the next iteration depends on."""
        return {
            "annealing/target": self.target,
            "annealing/iterations_done": self.iterations_done,
            "annealing/inverse": self.inverse,
            "annealing/agreement": self.agreement,
            "annealing/rate": self.rate,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.target = float(state["annealing/target"])
        self.iterations_done = int(state["annealing/iterations_done"])
        self.inverse = float(state["annealing/inverse"])
        # Older checkpoints lack these two.
        self.agreement = float(state.get("annealing/agreement", -np.inf))
        self.rate = float(state.get("annealing/rate", _RATE))


def say_in_temperature(sample: Batch) -> Array:
    """How much each frame of a sample (D,) says about the temperature: its fluence times its weight.

    Dim frames are spread over many poses at any temperature.  Where all weights are 0, only fluences count.
    """
    says = sample.fluence if sample.weight is None else sample.fluence * sample.weight
    return says if float(says.sum()) > 0 else sample.fluence


def sample_scores(
    work: Workspace, likelihood: Likelihood, models: Array, fluence: NDArray[np.float64],
    weight: NDArray[np.float64], stride: int = 1,
) -> tuple[Array, Batch]:  # fmt: skip
    """Scores (rows, D) of a few frames of one half with the model that orients them; and these frames.

    One half stands for both, because slicing another model costs more than scoring these frames.
    stride : only every so many poses are scored.
    """
    xp = work.xp
    poses = Poses(xp.ascontiguousarray(work.poses.matrices[::stride]), work.poses.log_weights[::stride])
    rows = RowSpace(poses, work.rows.n_models, work.rows.log_prior, tile_rows=work.rows.tile_rows)
    samples = ((half, work.sample(half, fluence, _SAMPLED_FRAMES, weight)) for half in range(len(models)))
    half, batch = next((half, batch) for half, batch in samples if batch is not None)
    expander = work.expander(models[len(models) - 1 - half])
    fused, tiles = can_fuse(likelihood, batch, expander), list(rows.tiles())
    own = tiles[work.mesh.all.share(len(tiles))]
    first, last = (own[0].first, own[-1].last) if own else (0, 0)
    scores = xp.empty((last - first, len(batch)), dtype=np.float32)
    for tile in own:
        slices = expander.turned(rows, tile) if fused else expander.slices(rows, tile, batch.by_pixel)
        scores[tile.first - first : tile.last - first] = score_tile(likelihood, slices, batch)
    return work.mesh.all.rows(scores), batch
