"""Try whether the frames of a state become likelier as two states, with every frame at its present pose.

How well a state explains its frames does not show which to split: a mean of two states explains bright frames
of both better than the sharpest model explains dim ones.  So every state is split on trial, and its frames
are sorted for a few rounds, in which they keep their poses and only choose between the two parts.  This costs
two slices for each frame instead of all poses.  Frames are always sorted by models of the half that they do
not belong to, so that their noise biases neither the choice nor the gain.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.compute.ranks.comm import complete_rows, own_blocks
from orienteer.likelihood.base import Likelihood
from orienteer.reconstruction.model.compression import Compressed
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.refinement import local_scores, merge_at

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Rounds of merging and sorting: enough for a part of a state to collect the rest of it.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Trial:
    """A state in two parts.

    parent : the state.
    is_new : (N,) bool, frames of the part that would become a state of its own.
    gain : by how many nats all frames of the state together become likelier.
    """

    parent: int
    is_new: NDArray[np.bool_]
    gain: float


def try_split(
    emc: "Emc", likelihood: Likelihood, parent: int, own: NDArray[np.bool_], is_seed: NDArray[np.bool_]
) -> Trial:
    """Sort the frames of a state into two parts.

    own : (N,) bool, its frames; is_seed : (N,) bool, those that the second part begins with.
    """
    as_one = _merged(emc, likelihood, parent, [own])
    before = _scores(emc, likelihood, parent, as_one, own)[0]
    is_new = is_seed & own
    evidence = before
    for number in range(_ROUNDS):
        parts = [own & ~is_new, is_new]
        if not all(part.any() for part in parts):
            break
        scores = _scores(emc, likelihood, parent, _merged(emc, likelihood, parent, parts), own)
        shares = np.log([part.sum() / own.sum() for part in parts])
        evidence = np.logaddexp(*(scores + shares[:, None]))
        sorted_now = own & (scores[1] + shares[1] > scores[0] + shares[0])
        # By chance, the two parts may be exchanged between the halves.  So in the first round only the second
        # half is sorted, by the parts of the first half.
        decided = emc.half == 1 if number == 0 and emc.n_halves == 2 else own
        is_new = np.where(decided, sorted_now, is_new)
    gain = float((evidence - before)[own].sum())
    if gain <= 0 or not all(part.any() for part in (own & ~is_new, is_new)):
        # At these poses there is one state.  With a search of all poses, its worst frames may still be
        # another.
        return Trial(parent, is_seed & own, 0.0)
    return Trial(parent, is_new, gain)


def _merged(emc: "Emc", likelihood: Likelihood, parent: int, parts: list[NDArray[np.bool_]]) -> Compressed:
    """A model for each part of the frames of a state: the model of the state, corrected by them."""
    deposits = []
    for half in range(emc.n_halves):
        first, *others = (_merged_at_poses(emc, likelihood, parent, half, part) for part in parts)
        whole = first.of_model(parent)
        for other in others:
            whole = whole.with_model(other, parent)
        deposits.append(whole)
    return emc.solve(deposits)


def _merged_at_poses(
    emc: "Emc", likelihood: Likelihood, parent: int, half: int, chosen: NDArray[np.bool_]
) -> Deposit:
    """The deposit of chosen frames of a half at their likeliest poses."""
    work, xp = emc.work, emc.xp
    expander = work.expander(emc.models[emc.n_halves - 1 - half])
    deposit = emc.new_deposit(work, half)
    for batch in work.batches(half, emc.fluence):
        frames = np.flatnonzero(chosen[batch.places])
        for block in own_blocks(work.mesh.poses, len(frames), emc.device == "cuda"):
            own = frames[block]
            poses = xp.asarray(emc.table.quaternion[batch.places[own]])
            merge_at(
                likelihood, expander, batch, xp.asarray(own), parent, poses, xp.ones(len(own)), deposit,
                work.pixel_weights, tile_rows=emc.plan.tile_rows,
            )  # fmt: skip
    deposit.join(work.mesh.all)
    return deposit


def _scores(
    emc: "Emc", likelihood: Likelihood, parent: int, found: Compressed, own: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """ln P (M, N) of frames at their poses, with M models of the half that they do not belong to."""
    work, xp = emc.work, emc.xp
    n_models = found.models.shape[1]
    scores = np.zeros((n_models, len(own)))
    seen = [np.zeros(0, dtype=np.int64)]
    for half in range(emc.n_halves):
        ratios = None if work.ratios is None else work.ratios[[parent] * n_models]
        expander = Expander(found.models[emc.n_halves - 1 - half], work.points, ratios=ratios)
        for batch in work.batches(half, emc.fluence):
            frames = np.flatnonzero(own[batch.places])
            places = batch.places[frames]
            seen.append(places)
            poses = xp.asarray(emc.table.quaternion[places])[:, None]
            for m in range(n_models):
                which: Array = xp.full(len(frames), m)
                scores[m, places] = to_numpy(
                    local_scores(
                        likelihood, expander, batch, xp.asarray(frames), which, poses, emc.plan.tile_rows
                    )
                )[:, 0]
    complete_rows(work.mesh.all, emc.frames.own_of(np.concatenate(seen)), *scores)
    return scores
