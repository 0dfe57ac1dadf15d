"""Annealing that sets itself: posteriors narrow step by step, never sharper than grid or data allow."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.tempering import inverse_temperature_for_perplexity, inverse_temperatures
from orienteer.reconstruction.orienting.expectation import can_fuse, score_tile
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.workspace import Workspace

# A start spreads every frame over this share of all poses.
_FIRST_SHARE = 0.08
# And a state that has just been split, whose poses are nearly known, over this one.
_SPLIT_SHARE = 0.01
# Poses that a frame is left with: the neighbours that interpolate between the points of the grid.
LAST_PERPLEXITY = 8.0
# What is left of the spread after an iteration: while the halves come to agree better, and where nothing is
# learnt any more at the temperature of the moment.
_RATE, _QUICK_RATE = 0.85, 0.7
# A smaller rise of the mean correlation of the halves is none.
_SMALL_RISE = 0.005
# Frames from which the temperature is taken.
_SAMPLED_FRAMES = 128
# Poses that a sampled frame is spread over at least; the largest step from pose to pose.
_FEWEST_SAMPLED, _LARGEST_STRIDE = 30.0, 8


class Annealing:
    """The spread of the posteriors from iteration to iteration.

    target : effective number of poses that a frame is spread over next; the likelihood itself (inverse
        temperature 1) is never sharpened.
    iterations_done : iterations since the last target was reached.
    inverse : the last inverse temperature.
    is_untempered : whether it left the likelihood of every frame as it is.
    is_followed : whether it is told how far the halves agree.  Of several states it is not: halves may agree
        before these are known.  In the one mixture that was tried, maps were worse after quick steps.
    agreement : of the halves after the last iteration.
    rate : what the next iteration leaves of the target.
    """

    def __init__(
        self, n_poses: int, *, is_first: bool = False, after_split: bool = False, is_followed: bool = False,
        likenesses: float = 1.0,
    ) -> None:  # fmt: skip
        """likenesses : poses that have become alike; at first a frame keeps as many neighbours of each."""
        share = _FIRST_SHARE if is_first else _SPLIT_SHARE if after_split else 0.0
        self.target = max(share * n_poses, likenesses * LAST_PERPLEXITY)
        self.iterations_done = 0
        self.inverse = 0.0
        self.is_untempered = False
        self.is_followed = is_followed
        self.agreement = -np.inf
        self.rate = _RATE

    @property
    def iterations_left(self) -> int:
        """Iterations until the last target is reached, most of which are quick where they may be."""
        rate = _QUICK_RATE if self.is_followed else _RATE
        return max(0, int(np.ceil(np.log(self.target / LAST_PERPLEXITY) / -np.log(rate))))

    @property
    def stride(self) -> int:
        """Of so many poses one is looked at next: spread posteriors are as well known from a part."""
        return int(np.clip(self.target / _FEWEST_SAMPLED, 1, _LARGEST_STRIDE))

    def inverse_temperature(
        self, work: Workspace, likelihood: Likelihood, models: Array, fluence: NDArray[np.float64],
        states_per_frame: float = 1.0,
    ) -> float:  # fmt: skip
        """Inverse temperature of a frame of mean fluence in the next iteration; narrows the target.

        states_per_frame : models that a frame is spread over, in each of which it has poses.
        It is taken from the scores of a few frames; others have theirs from ``inverse_temperatures``.
        """
        stride = self.stride
        scores, brightness = sample_scores(work, likelihood, models, fluence, stride)
        n_pose_rows = len(work.poses) * len(models[0])
        log_prior = work.rows.log_prior[:n_pose_rows].reshape(len(models[0]), -1)[:, ::stride].reshape(-1)
        self.inverse = inverse_temperature_for_perplexity(
            scores, log_prior, self.target * states_per_frame / stride,
            brightness=brightness if work.is_grouped else None,
        )  # fmt: skip
        # Done, too, when all the light is at the limit.
        typical = inverse_temperatures(self.inverse, brightness).mean() if work.is_grouped else self.inverse
        self.is_untempered = bool(typical >= 1)
        if self.target <= LAST_PERPLEXITY or self.is_untempered:
            self.iterations_done += 1
        self.target = max(LAST_PERPLEXITY, self.target * self.rate)
        return self.inverse

    def follow(self, agreement: float) -> None:
        """Narrow as fast as the models can follow: their halves agree so well after an iteration.

        Structure is found in the first iterations, or near the temperature at which it shows; what lies
        between only sharpens posteriors, and need not be gone through in small steps.
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
        # Older checkpoints have neither.
        self.agreement = float(state.get("annealing/agreement", -np.inf))
        self.rate = float(state.get("annealing/rate", _RATE))


def sample_scores(
    work: Workspace, likelihood: Likelihood, models: Array, fluence: NDArray[np.float64], stride: int = 1
) -> tuple[Array, Array]:
    """Scores (rows, D) of a few frames of a half against the model that orients them; their fluences.

    One half stands for both: to slice another model would cost more than to score these frames.
    stride : every so many poses are looked at.
    """
    xp = work.xp
    poses = Poses(xp.ascontiguousarray(work.poses.matrices[::stride]), work.poses.log_weights[::stride])
    rows = RowSpace(poses, work.rows.n_models, work.rows.log_prior, tile_rows=work.rows.tile_rows)
    samples = ((half, work.sample(half, fluence, _SAMPLED_FRAMES)) for half in range(len(models)))
    half, batch = next((half, batch) for half, batch in samples if batch is not None)
    expander = work.expander(models[len(models) - 1 - half])
    fused, tiles = can_fuse(likelihood, batch, expander), list(rows.tiles())
    own = tiles[work.mesh.all.share(len(tiles))]
    first, last = (own[0].first, own[-1].last) if own else (0, 0)
    scores = xp.empty((last - first, len(batch)), dtype=np.float32)
    for tile in own:
        slices = expander.turned(rows, tile) if fused else expander.slices(rows, tile, batch.by_pixel)
        scores[tile.first - first : tile.last - first] = score_tile(likelihood, slices, batch)
    return work.mesh.all.rows(scores), batch.fluence
