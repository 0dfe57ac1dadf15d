"""Expectation and maximisation of one batch of frames: slice, score, normalise, merge, in tiles of rows.

A row is a pose of a model; the rows of model m are m K .. (m + 1) K, and the junk classes, which do not
rotate, come last.  The matrix of rows times frames exists only for the batch, whose size the planner chooses.
"""

from typing import TYPE_CHECKING, Any

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.likelihood.background import merged_signal, weights_of_pixels
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.fluence import expected_photons
from orienteer.likelihood.panels import Panels
from orienteer.likelihood.product import SparseProduct
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.stopwatch import part
from orienteer.slicing.turned import TurnedVolume

if TYPE_CHECKING:
    from orienteer.reconstruction.states.posterior import StatePosterior

from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import RowSpace, Tile


def score_tile(likelihood: Likelihood, slices: Array | TurnedVolume, batch: Batch) -> Array:
    """Log-likelihoods (T, D) float32 of the rows of a tile for the frames of a batch.

    slices : (T, P) or (P, T), as the batch wants them; or yet to be made, where :func:`can_fuse` says so.
    """
    return _score_tile(likelihood, slices, batch)[0]


def can_fuse(likelihood: Likelihood, batch: Batch, *, is_listed: bool = False) -> bool:
    """Whether slices need not be seen to score the batch: operands of photon lists are made from the model.

    So it is on the CPU where all frames share their operand.

    is_listed : whether groups of frames have rows of their own, and no operand to share.
    """
    group = batch.groups[0]
    return (
        isinstance(group.product, SparseProduct)
        and not is_on_gpu(batch.fluence)
        and (is_listed or len(batch.groups) == 1 or not likelihood.needs_fluence_groups)
        and all(group.is_even or not likelihood.needs_fluence_groups for group in batch.groups)
        and all(group.frames.missing is None for group in batch.groups)
    )


def _score_tile(likelihood: Likelihood, slices: Any, batch: Batch) -> tuple[Array, Array, Array]:
    """Scores (T, D), the photons (T,) of each row at unit fluence on the scored pixels, and the offsets."""
    by_pixel = batch.by_pixel
    parts = []
    operand: Any = None
    for group in batch.groups:
        if operand is None or likelihood.needs_fluence_groups:
            with part("expand"):
                form = group.product.operand_form
                operand, offsets = likelihood.expand(slices, group.fluence, by_pixel, form)
        with part("score"):
            product = group.product.scores(operand)
            missing = None
            if group.frames.missing is not None:
                each = likelihood.expand_missing(slices, group.fluence, by_pixel)
                missing = group.product.missing_scores(each)
            own = batch.fluence[group.columns]
            fluence: Any = group.fluence if likelihood.needs_fluence_groups else own
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
    return scores, signal, offsets


def expect(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, beta: Array, store: ScoreStore
) -> Posterior:
    """Expectation: the tempered posterior of every frame over all rows, kept in the store.

    Ranks that share out the rows of the store take tiles as they come to them, and merge what they took.
    beta : (D,) or a number, inverse temperatures.
    """
    fused = can_fuse(likelihood, batch)
    tiles = expander.tiles(rows)
    if store.comm.size > 1:
        # What is claimed by several has one order for all, and scores are compared with those of one row.
        tiles = list(rows.tiles())
        store.refer(_first_scores(likelihood, expander, rows, batch, tiles[0]), beta)
    for tile in store.comm.claimed(tiles):
        with part("expand"):
            is_fused = fused and tile.model is not None
            slices: Any = (
                expander.turned(rows, tile) if is_fused else expander.slices(rows, tile, batch.by_pixel)
            )
        scores, signal, offsets = _score_tile(likelihood, slices, batch)
        expander.note(tile, signal, offsets)
        with part("posterior"):
            store.add(tile.first, scores, rows.log_prior[tile.first : tile.last], beta)
    with part("posterior"):
        return store.finish()


def _first_scores(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, tile: Tile
) -> Array:
    """Log-likelihoods (D,) of the first row of a tile."""
    if tile.model is not None:
        tile = Tile(tile.first, tile.first + 1, tile.model, slice(tile.poses.start, tile.poses.start + 1))
        if can_fuse(likelihood, batch):
            return score_tile(likelihood, expander.turned(rows, tile), batch)[0]
    return score_tile(likelihood, expander.slices(rows, tile, batch.by_pixel), batch)[0]


def merge(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, store: ScoreStore,
    deposit: Deposit, pixel_weights: Array, states: "StatePosterior | None" = None,
) -> Array:  # fmt: skip
    """Maximisation and compression: put the weighted frames back where their slices were taken.

    pixel_weights : (P,) float32, correction of the pixels.
    states : gathers how likely each model is for each frame; None: nobody asks.
    Returns photons (D,) float64 that the responsible rows expect at unit fluence on the scored pixels.
    """
    xp = array_namespace(batch.fluence)
    by_pixel = batch.by_pixel
    expected = xp.zeros(len(batch), dtype=xp.float64)
    # The product of a pair is in its score, where no pixel is missing.
    rescores = likelihood.needs_product_to_merge and all(g.frames.missing is None for g in batch.groups)
    sees_slices = likelihood.needs_product_to_merge and not rescores
    with part("posterior"):
        mass = store.row_mass()
        # One look at all of it: the GPU is not waited for in every tile.
        on_host = to_numpy(mass)
        largest_offset = None
        if likelihood.needs_product_to_merge:
            largest_offset = expander.largest_offset(store.comm)
    if batch.counted is None:
        deposit.row_mass += mass
    for tile in rows.tiles():
        if not on_host[tile.first : tile.last].sum() > 0:
            continue
        with part("posterior"):
            responsibilities = store.responsibilities(tile.first, tile.last)
            if batch.counted is not None:
                counted = responsibilities[:, batch.counted]
                deposit.row_mass[tile.first : tile.last] += counted.sum(axis=1, dtype=xp.float64)
            if states is not None and tile.model is not None:
                states.add(tile.model, tile.first, responsibilities)
        signal = expander.signal(tile)
        with part("expand"):
            slices = expander.slices(rows, tile, by_pixel) if sees_slices else None
            if signal is None:
                sliced = expander.slices(rows, tile, by_pixel)
                signal = likelihood.pixels.scored_signal(sliced, by_pixel=by_pixel)
        with part("fluence"):
            for group in batch.groups:
                own = xp.ascontiguousarray(responsibilities[:, group.columns])
                expected[group.columns] += expected_photons(own, signal)
        with part("merge"):
            scores = offsets = None
            if rescores:
                scores, offsets = store.scores(tile.first, tile.last), expander.offsets(tile)
            values, row_weights, weights = _deposited(
                likelihood, slices, batch, responsibilities, pixel_weights, scores, offsets, largest_offset
            )
        if tile.model is None:
            deposit.add_junk(slice(None), values, row_weights, pixel_weights, by_pixel, weights)
            continue
        matrices = rows.poses.matrices[tile.poses]
        deposit.add(
            tile.model, expander.points, matrices, values, row_weights, pixel_weights, by_pixel, weights
        )
    if states is not None:
        states.join(store.comm)
    return store.comm.sum(expected)


def _deposited(
    likelihood: Likelihood, slices: Array | None, batch: Batch, responsibilities: Array, pixel_weights: Array,
    scores: Array | None, offsets: Array | None, largest_offset: float | None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """Numerators in the layout of slices, weights of the rows, and full weights where these are no products:
    pixels are missing, or have a background.

    scores, offsets : (T, D), (T,), from which a likelihood that needs it gets its product; None: from slices.
    """
    xp = array_namespace(responsibilities)
    by_pixel = batch.by_pixel
    values: Array = None
    row_weights: Array = None
    full: Array | None = None
    has_missing = any(group.frames.missing is not None for group in batch.groups)
    pixels = likelihood.pixels
    for group in batch.groups:
        own = xp.ascontiguousarray(responsibilities[:, group.columns])
        if batch.weight is not None:
            own = own * batch.weight[group.columns]
        product = None
        if likelihood.needs_product_to_merge and scores is None:
            operand, _ = likelihood.expand(slices, group.fluence, by_pixel, group.product.operand_form)
            product = group.product.scores(operand)
        fluence = batch.fluence[group.columns]
        weights = likelihood.merge_weights(
            own, group.frames, fluence=fluence, product=product, offsets=offsets,
            largest_offset=largest_offset,
            scores=None if scores is None else xp.ascontiguousarray(scores[:, group.columns]),
        )  # fmt: skip
        merged = group.product.merge(weights.numerator, largest=weights.largest)
        lost, of_pixels = None, pixel_weights
        if group.frames.missing is not None and weights.denominator is not None:
            lost = group.product.missing_merge(weights.denominator)
        if pixels.background is not None:
            shown = weights.numerator.sum(axis=1)
            if group.frames.missing is not None:
                hidden = group.product.missing_merge(weights.numerator)
                shown = (shown[None, :] if by_pixel else shown[:, None]) - hidden
            merged, share = merged_signal(merged, shown, pixels, group.fluence, by_pixel)
            of_pixels = pixel_weights * share
        values = merged if values is None else values + merged
        row_weights = weights.row if row_weights is None else row_weights + weights.row
        if has_missing or pixels.background is not None:
            own_weights = weights_of_pixels(of_pixels, weights.row, lost, by_pixel)
            full = own_weights if full is None else full + own_weights
    return values, row_weights, full
