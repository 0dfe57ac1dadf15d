"""Expectation of one batch of frames: slice the model, score, normalise; in tiles of rows.

A row is a pose of a model.  The rows of model m are m K .. (m + 1) K; the junk classes, which do not rotate,
come last.  The matrix of all rows times all frames is never stored: only that of one batch, whose size the
plan chooses.
"""

from collections.abc import Sequence
from typing import Any

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.panels import Panels
from orienteer.likelihood.product import SparseProduct
from orienteer.likelihood.rounding import LARGEST_ERROR, N_ROWS, error_of_half
from orienteer.likelihood.score_law import ScoreLaw
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import RowSpace, Tile
from orienteer.reconstruction.stopwatch import part
from orienteer.slicing.turned import TurnedVolume


def score_tile(
    likelihood: Likelihood, slices: Array | TurnedVolume, batch: Batch, one_term: bool = False
) -> Array:
    """Log-likelihoods (T, D) float32 of the rows of a tile for the frames of a batch.

    slices : (T, P) or (P, T), in the layout of the batch; or a volume yet to be sliced, if :func:`can_fuse`.
    one_term : whether a single float16 term is accurate enough for an operand that would otherwise have two.
    """
    found, _, _, law = _score_tile(likelihood, slices, batch, one_term)
    return found if law is None else law.scores(found, found)


def can_fuse(likelihood: Likelihood, batch: Batch, expander: Expander, *, is_listed: bool = False) -> bool:
    """Whether a batch can be scored without storing slices: the operand is computed directly from the model.

    This needs lists of photons on the CPU, one operand for all frames, no forbidden pixels in single frames,
    and slices that are not multiplied by ratios.

    is_listed : whether each group of frames has rows of its own, so that there is no operand to share.
    """
    group = batch.groups[0]
    return (
        isinstance(group.product, SparseProduct)
        and expander.ratios is None
        and not is_on_gpu(batch.fluence)
        and (is_listed or len(batch.groups) == 1 or not likelihood.needs_fluence_groups)
        and all(group.is_even or not likelihood.needs_fluence_groups for group in batch.groups)
        and all(group.frames.missing is None for group in batch.groups)
    )


def _score_tile(
    likelihood: Likelihood, slices: Any, batch: Batch, one_term: bool = False
) -> tuple[Array, Array, Array, ScoreLaw | None]:
    """Scores (T, D); photons (T,) of each row at unit fluence on the scored pixels; offsets; a law or None.

    If there is a law, the first are not scores but products, from which the law computes the scores.
    one_term : as in :func:`score_tile`.
    """
    by_pixel = batch.by_pixel
    parts = []
    operand: Any = None
    law: ScoreLaw | None = None
    for group in batch.groups:
        if operand is None or likelihood.needs_fluence_groups:
            with part("expand"):
                form = group.product.operand_form
                form = "half" if group.product.may_take_one_term and one_term else form
                operand, offsets = likelihood.expand(slices, group.fluence, by_pixel, form)
        with part("score"):
            product = group.product.scores(operand)
            missing = None
            if group.frames.missing is not None:
                each = likelihood.expand_missing(slices, group.fluence, by_pixel)
                missing = group.product.missing_scores(each)
            own = batch.fluence[group.columns]
            fluence: Any = group.fluence if likelihood.needs_fluence_groups else own
            if is_on_gpu(product) and len(batch.groups) == 1 and group.is_even and missing is None:
                law = likelihood.score_law(offsets, group.frames, fluence)
                parts.append(product)
                continue
            slopes = None if group.is_even else likelihood.fluence_slopes(slices, group.fluence, by_pixel)
            parts.append(
                likelihood.scores(
                    product, offsets, group.frames, fluence=fluence, missing=missing, slopes=slopes,
                    frame_fluence=None if slopes is None else own, out=product,
                )
            )  # fmt: skip
    with part("expand"):
        if isinstance(operand, Panels):
            signal = operand.signal
        else:
            signal = likelihood.pixels.scored_signal(slices, by_pixel=by_pixel)
    scores = parts[0] if len(parts) == 1 else array_namespace(parts[0]).concatenate(parts, axis=1)
    return scores, signal, offsets, law


def expect(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, beta: Array, store: ScoreStore
) -> Posterior:
    """Expectation (the E-step): the tempered posterior of every frame over all rows, kept in the store.

    Ranks that share the rows of the store take tiles as they become free, and later merge the same tiles.
    beta : (D,) or a number, inverse temperatures.
    """
    fused = can_fuse(likelihood, batch, expander)
    slices: Any
    tiles: Sequence[Tile]
    # Scores are stored relative to those of the first row.  Ranks that share tiles must have the same first
    # scores, and so the same number of terms.  A single rank does the same, to have the same bits.
    first = next(rows.tiles())
    one_term = _one_term_is_enough(likelihood, expander, rows, batch, first, beta)
    store.refer(_first_scores(likelihood, expander, rows, batch, first, one_term), beta)
    # Tiles that several ranks claim must have the same order on all of them.
    tiles = list(rows.tiles()) if store.comm.size > 1 else expander.tiles(rows)
    for tile in store.comm.claimed(tiles):
        with part("expand"):
            is_fused = fused and tile.model is not None
            slices = expander.turned(rows, tile) if is_fused else expander.slices(rows, tile, batch.by_pixel)
        scores, signal, offsets, law = _score_tile(likelihood, slices, batch, one_term)
        expander.note(tile, signal, offsets)
        with part("posterior"):
            store.add(tile.first, scores, rows.log_prior[tile.first : tile.last], beta, law)
    with part("posterior"):
        return store.finish()


def _one_term_is_enough(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, tile: Tile, beta: Array
) -> bool:
    """Whether operands with a single float16 term are accurate enough for all frames at their temperatures.

    Two terms cost twice as much.  The error is estimated from the first rows of a tile.  False if no product
    has this choice.
    """
    if not any(group.product.may_take_one_term for group in batch.groups):
        return False
    slices = expander.slices(rows, _beginning(tile, N_ROWS), batch.by_pixel)
    xp = array_namespace(batch.fluence)
    betas = xp.broadcast_to(xp.asarray(beta), (len(batch),))
    for group in batch.groups:
        own = group.columns
        fluence: Any = group.fluence if likelihood.needs_fluence_groups else batch.fluence[own]
        error = error_of_half(likelihood, slices[:N_ROWS], group.frames, fluence, betas[own])
        if not error <= LARGEST_ERROR:  # this is also true for NaN
            return False
    return True


def _first_scores(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, tile: Tile, one_term: bool
) -> Array:
    """Log-likelihoods (D,) of the first row of a tile."""
    tile = _beginning(tile, 1)
    if tile.model is not None and can_fuse(likelihood, batch, expander):
        return score_tile(likelihood, expander.turned(rows, tile), batch)[0]
    return score_tile(likelihood, expander.slices(rows, tile, batch.by_pixel), batch, one_term)[0]


def _beginning(tile: Tile, n_rows: int) -> Tile:
    """The first rows of a tile of poses; junk classes are taken whole."""
    if tile.model is None:
        return tile
    n_rows = min(n_rows, tile.last - tile.first)
    poses = slice(tile.poses.start, tile.poses.start + n_rows)
    return Tile(tile.first, tile.first + n_rows, tile.model, poses)
