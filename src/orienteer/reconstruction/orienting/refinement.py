"""Poses between the points of a grid: from each frame's best pose to the nearby maximum of its likelihood.

All frames climb together.  Scores in twelve directions around the pose of a frame are fitted by a parabola.
Its maximum is the next pose, and its curvature gives the precision of the pose.  Along its conjugate axes the
next parabola has hardly any mixed terms, so that six directions are enough.  The frame is then merged at a
small cloud of poses as wide as that precision, each with its own probability: bright frames practically at
one pose, faint frames spread as widely as their photons leave the pose uncertain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.likelihood.base import Likelihood
from orienteer.orientation.quaternion import compose, normalise, to_matrix
from orienteer.posterior.blocks import BlockList
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import can_fuse
from orienteer.reconstruction.orienting.listed_rows import merge_listed, score_listed
from orienteer.slicing.turned import TurnedVolume

_SIDES = np.array([[i, j, k] for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)], dtype=np.float64)
_LENGTH = np.abs(_SIDES).sum(axis=1)
# The centre and the twelve neighbours in a close-packed lattice: they determine every quadratic form.
STENCIL = np.concatenate([np.zeros((1, 3)), _SIDES[_LENGTH == 2] / np.sqrt(2)])
# The centre and both directions along each axis: enough for a quadratic form without mixed terms.
CROSS = np.concatenate([np.zeros((1, 3)), _SIDES[_LENGTH == 1]])
# A cross that represents a Gaussian: this share lies in the centre, and the other points lie where they give
# the right variance.
_CENTRE_SHARE = 0.4
CLOUD = CROSS * np.sqrt(3 / (1 - _CENTRE_SHARE))
# With these weights, each pose gets exactly its share if the posterior is Gaussian.
CLOUD_LOG_WEIGHTS = np.log([_CENTRE_SHARE, *[(1 - _CENTRE_SHARE) / 6] * 6]) + 0.5 * (CLOUD**2).sum(axis=1)
# Two nearby poses count as equally good if their scores differ by less than this, in nats and as a share of
# the score.  A pose between them is then taken: if rounding decided, results would differ from rank to rank.
_TIE, _RELATIVE_TIE = 0.1, 1e-5
# Upper triangle of a symmetric 3 x 3 matrix: the six products of a quadratic form in three variables.
_FIRST, _SECOND = np.triu_indices(3)


@dataclass(frozen=True, eq=False)
class Refined:
    """Poses of F frames of a batch at the maxima of their likelihoods.

    frames : (F,) int64, places in the batch.
    model : (F,) int64.
    quaternions : (F, 4) float64.
    score : (F,) float64 log-likelihood at the pose, never less than where the climb began.
    gain : (F,) float64, by how much the score rose in the climb.
    axes_rad : (F, 3, 3) float64 A; A A^T is the covariance of the posterior about the pose.  The columns are
        conjugate axes, as rotation vectors in the laboratory, none longer than the first step.
    """

    frames: Array
    model: Array
    quaternions: Array
    score: Array
    gain: Array
    axes_rad: Array

    def __len__(self) -> int:
        return len(self.frames)


def refine_poses(
    likelihood: Likelihood, expander: Expander, batch: Batch, frames: Array, model: Array, quaternions: Array,
    step_deg: float, *, n_steps: int = 4, tile_rows: int = 512,
) -> Refined:  # fmt: skip
    """Climb from given poses to the nearby maxima of the likelihood.

    frames : (F,) places in the batch; model : (F,) at least 0; quaternions : (F, 4) where to begin.
    step_deg : distance of the neighbours in the first parabola: about the covering radius of the grid.
    n_steps : number of parabolas; each is up to 3 times narrower than the one before, until it is as wide as
        the posterior.
    """
    xp = array_namespace(batch.fluence)
    frames, model, now = xp.asarray(frames), xp.asarray(model), xp.asarray(quaternions, dtype=np.float64)
    F = len(frames)
    steps = axes = xp.broadcast_to(xp.eye(3), (F, 3, 3)) * np.radians(step_deg)
    best, best_score, begun, first_score = now, xp.full(F, -np.inf), now, xp.full(F, -np.inf)
    for number in range(n_steps):
        stencil = CROSS if number else STENCIL
        poses = turned(now[:, None], xp.matmul(xp.asarray(stencil), xp.matrix_transpose(steps)))
        scores = local_scores(likelihood, expander, batch, frames, model, poses, tile_rows)
        if number == 0:
            first_score = scores[:, 0]
        top = scores.max(axis=1)
        tie = _TIE + _RELATIVE_TIE * xp.abs(top)
        here = _mean(poses, xp.clip(1 - (top[:, None] - scores) / tie[:, None], 0, 1))
        best, best_score = _better(best, here, top - best_score, tie), xp.maximum(best_score, top)
        move, axes_in_steps, predicted = _top_of_parabola(scores, stencil)
        # If the parabola predicts less than the best neighbour has, that neighbour is the next pose.
        along = xp.matmul(steps, move[..., None])[..., 0]
        now = _better(here, turned(now, along), predicted - top, tie)
        axes = xp.matmul(steps, axes_in_steps)
        narrower = xp.sqrt((axes_in_steps**2).sum(axis=1, keepdims=True))
        steps = axes * xp.maximum(narrower, 1 / 3) / narrower
    last = local_scores(likelihood, expander, batch, frames, model, now[:, None], tile_rows)[:, 0]
    ended = _better(best, now, last - best_score, tie)
    score = local_scores(likelihood, expander, batch, frames, model, ended[:, None], tile_rows)[:, 0]
    is_lower = score < first_score
    ended = xp.where(is_lower[:, None], begun, ended)
    score = xp.where(is_lower, first_score, score)
    return Refined(frames, model, ended, score, score - first_score, axes)


def _better(one: Array, other: Array, gain: Array, tie: Array) -> Array:
    """The better of two nearby poses (F, 4), or a pose between them if they are nearly equally good.

    gain : (F,) nats by which ``other`` is better; tie : (F,) nats that make no difference.
    """
    xp = array_namespace(gain)
    share = xp.clip(0.5 + 0.5 * gain / tie, 0, 1)
    return _mean(xp.stack([one, other], axis=1), xp.stack([1 - share, share], axis=1))


def _mean(poses: Array, weights: Array) -> Array:
    """The mean (F, 4) of O nearby poses (F, O, 4) with weights (F, O)."""
    mean = (weights[..., None] * poses).sum(axis=1)
    return mean / array_namespace(mean).linalg.norm(mean, axis=1, keepdims=True)


def merge_refined(
    likelihood: Likelihood, expander: Expander, batch: Batch, refined: Refined, deposit: Deposit,
    pixel_weights: Array, *, tile_rows: int = 512,
) -> Array:  # fmt: skip
    """Merge refined frames at small clouds of poses around their refined poses.

    deposit : its ``row_mass`` does not change, because a cloud belongs to no row of a grid.
    Returns the effective number of poses (F,) float64 that each frame was spread over.
    """
    xp = array_namespace(batch.fluence)
    offsets = xp.matmul(xp.asarray(CLOUD), xp.matrix_transpose(refined.axes_rad))
    poses = turned(refined.quaternions[:, None], offsets)
    scores = local_scores(likelihood, expander, batch, refined.frames, refined.model, poses, tile_rows)
    probability, perplexity = _softmax(scores + xp.asarray(CLOUD_LOG_WEIGHTS))
    for m, part in _tiles(refined.model, len(CLOUD), tile_rows):
        own = refined.frames[part]
        _merge_tile(
            likelihood, expander, batch, own, m, poses[part], probability[part], deposit, pixel_weights
        )
    return perplexity


def merge_at(
    likelihood: Likelihood, expander: Expander, batch: Batch, frames: Array, model: int, quaternions: Array,
    probability: Array, deposit: Deposit, pixel_weights: Array, *, tile_rows: int = 512,
) -> None:  # fmt: skip
    """Merge frames (F,) of a batch into one model at one pose each, (F, 4), with probabilities (F,)."""
    for first in range(0, len(frames), tile_rows):
        part = slice(first, first + tile_rows)
        poses, own = quaternions[part][:, None], probability[part][:, None]
        _merge_tile(likelihood, expander, batch, frames[part], model, poses, own, deposit, pixel_weights)


def signal_at(
    likelihood: Likelihood, expander: Expander, model: int, quaternions: Array, by_pixel: bool,
    tile_rows: int = 512,
) -> Array:  # fmt: skip
    """Photons (F,) that a model predicts on the scored pixels at unit fluence, at poses (F, 4)."""
    xp = array_namespace(quaternions)
    found = xp.zeros(len(quaternions))
    for first in range(0, len(quaternions), tile_rows):
        part = slice(first, first + tile_rows)
        matrices = _matrices(quaternions[part])
        slices = expander.slices_of(model, matrices, by_pixel)
        found[part] = likelihood.pixels.scored_signal(slices, by_pixel=by_pixel)
    return found


def _merge_tile(
    likelihood: Likelihood, expander: Expander, batch: Batch, frames: Array, model: int, poses: Array,
    probability: Array, deposit: Deposit, pixel_weights: Array,
) -> None:  # fmt: skip
    """Merge frames (F,) into a model at O poses (F, O, 4) each, with probabilities (F, O)."""
    xp = array_namespace(batch.fluence)
    own = _own_blocks(frames, poses.shape[1], len(batch))
    matrices = _matrices(poses)
    seen = None
    if likelihood.needs_product_to_merge:
        seen = expander.slices_of(model, matrices, batch.by_pixel)
    weights = xp.ascontiguousarray(probability.reshape(-1).astype(np.float32))
    merged = merge_listed(likelihood, seen, batch, own, weights, pixel_weights)
    deposit.add(
        model, expander.points, matrices, merged.values, merged.row_weights, pixel_weights, batch.by_pixel,
        merged.weights,
    )  # fmt: skip


def _softmax(scores: Array) -> tuple[Array, Array]:
    """Probabilities (F, O) of scores (F, O), and how many poses each frame is spread over, (F,)."""
    xp = array_namespace(scores)
    weights = xp.exp(scores - scores.max(axis=1, keepdims=True))
    probability = weights / weights.sum(axis=1, keepdims=True)
    return probability, xp.exp(-(probability * xp.log(xp.maximum(probability, 1e-300))).sum(axis=1))


def local_scores(
    likelihood: Likelihood, expander: Expander, batch: Batch, frames: Array, model: Array, poses: Array,
    tile_rows: int = 512,
) -> Array:  # fmt: skip
    """Log-likelihoods (F, O) float64 of frames at O poses (F, O, 4) of their own.

    Each slice belongs to one frame and is multiplied by its fluence.  In groups fluences are right to first
    order only; bright frames would then be wrong by many nats and climb to a wrong maximum.
    """
    xp = array_namespace(batch.fluence)
    scores = xp.empty(poses.shape[:2], dtype=np.float64)
    n_poses, ratio = poses.shape[1], _brightness_in_group(likelihood, batch)
    memory: dict[tuple[int, ...], Array] = {}
    is_fused = can_fuse(likelihood, batch, expander, is_listed=True)
    for m, part in _tiles(model, n_poses, tile_rows):
        own = TurnedVolume(expander.models[m], expander.points, _matrices(poses[part]), memory)
        slices: Any = own
        if not is_fused:
            slices = expander.brightened(m, own.slices(batch.by_pixel), batch.by_pixel)
            if ratio is not None:
                of_row = xp.repeat(ratio[frames[part]], n_poses)
                slices *= of_row if batch.by_pixel else of_row[:, None]
        blocks = _own_blocks(frames[part], n_poses, len(batch))
        found = score_listed(likelihood, slices, batch, blocks, are_as_bright=ratio is not None)
        scores[part] = found.reshape(-1, n_poses)
    return scores


def _brightness_in_group(likelihood: Likelihood, batch: Batch) -> Array | None:
    """Fluence of each frame (D,) float32 over that of its group; None if it makes no difference."""
    if not likelihood.needs_fluence_groups or all(group.is_even for group in batch.groups):
        return None
    xp = array_namespace(batch.fluence)
    ratio = xp.ones(len(batch), dtype=np.float32)
    for group in batch.groups:
        ratio[group.columns] = batch.fluence[group.columns] / group.fluence
    return ratio


def turned(quaternions: Array, rotation_vectors: Array) -> Array:
    """Poses (..., 4) turned further, in the laboratory, by small rotation vectors (..., 3) in radians."""
    xp = array_namespace(rotation_vectors)
    ones = xp.ones((*rotation_vectors.shape[:-1], 1))
    return compose(normalise(xp.concatenate([ones, rotation_vectors / 2], axis=-1)), quaternions)


def _top_of_parabola(scores: Array, stencil: NDArray[np.float64]) -> tuple[Array, Array, Array]:
    """The parabola through scores (F, O) on a stencil (O, 3): its maximum, main axes as columns, and height.

    Lengths are in steps of the stencil; mixed terms that the stencil does not measure are 0.  If the maximum
    is more than a step away, or there is none, the move is one step uphill.  An axis along which the scores
    do not fall has the length of a step.
    """
    xp = array_namespace(scores)
    to_coefficients = xp.asarray(np.linalg.pinv(_quadratic_terms(stencil)))
    coefficients = xp.matmul(scores - scores[:, :1], to_coefficients.T)
    slope = coefficients[:, 1:4]
    curvature = xp.zeros((len(scores), 3, 3))
    for i, (a, b) in enumerate(zip(_FIRST, _SECOND, strict=True)):
        curvature[:, a, b] += coefficients[:, 4 + i]
        curvature[:, b, a] += coefficients[:, 4 + i]
    bend, axes = xp.linalg.eigh(-curvature)
    bend = xp.maximum(bend, 1.0)  # one nat per step squared: no axis is longer than a step
    along = xp.matmul(xp.matrix_transpose(axes), slope[..., None])[..., 0] / bend
    length = xp.sqrt((along**2).sum(axis=1, keepdims=True))
    along = along * xp.minimum(1.0, 1.0 / xp.maximum(length, 1e-12))
    move = xp.matmul(axes, along[..., None])[..., 0]
    rise = (slope * move).sum(axis=1) + 0.5 * xp.einsum("fi,fij,fj->f", move, curvature, move)
    return move, axes / xp.sqrt(bend)[:, None, :], scores[:, 0] + coefficients[:, 0] + rise


def _quadratic_terms(points: Any) -> Any:
    """1, x, y, z and the six products of two of them at points (n, 3): (n, 10)."""
    products = points[:, _FIRST] * points[:, _SECOND]
    return np.concatenate([np.ones((len(points), 1)), points, products], axis=1)


def _tiles(model: Array, n_poses: int, tile_rows: int) -> Iterator[tuple[int, Array]]:
    """Frames in tiles: each of one model, and as many as fit."""
    xp = array_namespace(model)
    which = to_numpy(model)
    size = max(1, tile_rows // n_poses)
    for m in np.unique(which):
        members = np.flatnonzero(which == m)
        for first in range(0, len(members), size):
            yield int(m), xp.asarray(members[first : first + size])


def _matrices(poses: Array) -> Array:
    """(F O, 3, 3) float32 transposes of the rotations (F, O, 4)."""
    xp = array_namespace(poses)
    matrices = xp.matrix_transpose(to_matrix(poses.reshape(-1, 4)))
    return xp.ascontiguousarray(matrices.astype(np.float32))


def _own_blocks(frames: Array, n_poses: int, n_frames: int) -> BlockList:
    """A block of n_poses rows for each frame."""
    xp = array_namespace(frames)
    number = np.arange(len(frames) + 1)
    starts = number * n_poses, number
    block_start, pair_start = (xp.asarray(start) for start in starts)
    row = xp.arange(len(frames) * n_poses)
    return BlockList(n_frames, pair_start[:-1], block_start, row, pair_start, frames.astype(np.int32), starts)
