"""The end of a run: poses leave the grid, and frames are merged once more at their refined poses."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.compute.ranks.comm import complete_rows, own_blocks
from orienteer.likelihood.base import Likelihood
from orienteer.orientation.six_hundred_cell import covering_bound_deg
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.nuisances.first_estimates import bounded_weights
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.refinement import (
    Refined,
    local_scores,
    merge_at,
    merge_refined,
    refine_poses,
)
from orienteer.reconstruction.workspace import Part

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc

# Frames are merged at refined poses only if their median perplexity is at most this: others are too uncertain
# to have a single pose.
_MOST_POSES = 64.0
# Parabolas of a climb from the grid; parabolas of the second climb; and by what factor that begins narrower,
# because new models hardly move the maxima.
_CLIMB, _SECOND_CLIMB, _NARROWER = 4, 1, 9


def refine_all(emc: "Emc", likelihood: Likelihood) -> bool:
    """Move every frame from its best pose of the grid to the nearby maximum of its likelihood; merge there.

    The new models are accepted if the halves show that they are nearer to the truth, and if they make the
    frames likelier, each judged by the half that it does not belong to.  They are sharper than those from the
    grid.  But they are noisier if frames have many equally good poses, as those of a symmetric particle have:
    the grid spreads a frame over all of them, and here it is merged at one.  A higher likelihood alone would
    prove nothing, because one of many poses always fits the noise.  Without halves there is no such test, and
    the models stay as they are.  Frames keep the poses that they have climbed to in the models that are used
    in the end.  Returns whether the new models were accepted.
    """
    if emc.known is not None and emc.known.are_all:
        return False
    table, merged = emc.table, emc.table.merged & ~emc.sentinel
    # Here and below: ranks may round differently, but must decide alike.
    is_sharp = float(np.median(table.perplexity[merged])) <= _MOST_POSES * emc.n_models
    deposits = [emc.new_deposit(emc.work, half) for half in range(emc.n_halves)]
    merges = emc.mesh.all.bcast(is_sharp and emc.n_halves == 2)
    _refine_parts(emc, likelihood, deposits if merges else None)
    if not merges:
        return False
    before = emc.models, table.quaternion.copy(), table.log_likelihood.copy(), table.log_evidence.copy()
    for deposit in deposits:
        deposit.join(emc.mesh.all)
    found = emc.solve(deposits)
    if not emc.mesh.all.bcast(emc.are_nearer(found)):
        return False
    emc.models = found.models
    _refine_parts(emc, likelihood, None, is_near=True)
    if emc.mesh.all.bcast(table.log_likelihood[merged].mean() <= before[2][merged].mean()):
        emc.models, table.quaternion, table.log_likelihood, table.log_evidence = before
        return False
    emc.take_models(found)
    return True


def _refine_parts(
    emc: "Emc", likelihood: Likelihood, deposits: list[Deposit] | None, is_near: bool = False
) -> None:
    done = [
        _refine_part(emc, likelihood, half, None if deposits is None else deposits[half], is_near)
        for half in range(emc.n_halves)
    ]
    done.append(_refine_part(emc, likelihood, "sentinel", None, is_near))
    table = emc.table
    complete_rows(
        emc.mesh.all, np.concatenate(done), table.quaternion, table.log_likelihood, table.log_evidence
    )


def _refine_part(
    emc: "Emc", likelihood: Likelihood, part: Part, deposit: Deposit | None, is_near: bool
) -> NDArray[np.int64]:
    """Refine this rank's share of the frames of a part; returns their places."""
    work, stage = emc.work, emc.work.stage
    # Each half is compared with the model of the other half, and the sentinels with the last one.  Sentinels
    # were oriented on the coarse grid only, so their first step is wider.
    other = emc.n_halves - 1 - part if isinstance(part, int) else emc.n_halves - 1
    expander = work.expander(emc.models[other], emc.junk)
    step_deg = covering_bound_deg(stage.first_level if part == "sentinel" else stage.level)
    if is_near:
        step_deg /= _NARROWER
    tile_rows = emc.plan.refined_rows
    weight = bounded_weights(emc.table.weight, emc.fluence)
    done = [np.zeros(0, dtype=np.int64)]
    for batch, constants, block in _own_blocks(emc, likelihood, work.batches(part, emc.fluence, weight)):
        model = emc.table.model[batch.places]
        is_own = np.zeros(len(batch), dtype=bool)
        is_own[block] = True
        done.append(batch.places[is_own])
        is_free = np.ones(len(batch), dtype=bool)
        if emc.known is not None and part != "sentinel":
            is_free = ~emc.known.is_known[batch.places]
            known = np.flatnonzero(is_own & ~is_free & (model >= 0))
            _keep_known(emc, likelihood, expander, batch, constants, known, deposit, is_near)
        frames = np.flatnonzero(is_own & (model >= 0) & is_free)
        if not len(frames):
            continue
        begun = emc.table.quaternion[batch.places[frames]]
        refined = refine_poses(
            likelihood, expander, batch, frames, model[frames], begun, step_deg,
            n_steps=_SECOND_CLIMB if is_near else _CLIMB, tile_rows=tile_rows,
        )  # fmt: skip
        _note(emc, batch, constants, refined, is_near)
        if deposit is not None:
            merge_refined(
                likelihood, expander, batch, refined, deposit, work.pixel_weights, tile_rows=tile_rows
            )
    return np.concatenate(done)


def _own_blocks(
    emc: "Emc", likelihood: Likelihood, batches: Iterable[Batch]
) -> Iterator[tuple[Batch, NDArray[np.float64], slice]]:
    """The frames of each batch that climb together on this rank: the same blocks on any number of ranks.

    Between batch and block: what the scores of the batch leave out, (D,), which all its blocks need.

    The last bits of a climb depend on which frames climb together.  If no axis of a parabola is better than
    another, these bits decide along which the climb goes on.
    """
    for batch in batches:
        constants = emc.table.constants(likelihood, batch)
        for block in own_blocks(emc.work.mesh.poses, len(batch), emc.device == "cuda"):
            yield batch, constants, block


def _keep_known(
    emc: "Emc", likelihood: Likelihood, expander: Expander, batch: Batch, constants: NDArray[np.float64],
    frames: NDArray[np.int64], deposit: Deposit | None, is_near: bool,
) -> None:  # fmt: skip
    """Keep frames (F,) of a batch at their given poses, and merge them there."""
    if not len(frames):
        return
    xp, model = emc.xp, emc.table.model[batch.places[frames]]
    poses = xp.asarray(emc.table.quaternion[batch.places[frames]])
    own = xp.asarray(frames), xp.asarray(model)
    score = local_scores(likelihood, expander, batch, *own, poses[:, None], emc.plan.tile_rows)[:, 0]
    nothing = xp.zeros_like(score)
    refined = Refined(*own, poses, score, nothing, xp.zeros((len(frames), 3, 3)))
    _note(emc, batch, constants, refined, is_near)
    if deposit is not None:
        for m in np.unique(model):
            of_model = xp.asarray(np.flatnonzero(model == m))
            merge_at(
                likelihood, expander, batch, own[0][of_model], int(m), poses[of_model],
                xp.ones(len(of_model)), deposit, emc.work.pixel_weights, tile_rows=emc.plan.tile_rows,
            )  # fmt: skip


def _note(emc: "Emc", batch: Batch, constants: NDArray[np.float64], refined: Refined, is_near: bool) -> None:
    """Write the refined poses and scores into the table; the evidence rises by as much as the score.

    constants : (D,) that the scores of the batch leave out.
    Scores on a grid use the fluence of a group, and these the frame's own.  The two cannot be compared, and
    so the gain is that of the climb.  In the second climb the score in the table is of this kind already, and
    the gain is the difference from it.
    """
    frames = to_numpy(refined.frames)
    score = to_numpy(refined.score) + constants[frames]
    places, table = batch.places[frames], emc.table
    table.quaternion[places] = to_numpy(refined.quaternions)
    table.log_evidence[places] += score - table.log_likelihood[places] if is_near else to_numpy(refined.gain)
    table.log_likelihood[places] = score
