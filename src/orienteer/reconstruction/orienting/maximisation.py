"""Maximisation of one batch of frames: each is merged at its poses, weighted by their probabilities."""

from typing import TYPE_CHECKING

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.exact_sums import in_parts
from orienteer.likelihood.background import merged_signal, weights_of_pixels
from orienteer.likelihood.base import Likelihood, MergeLaw
from orienteer.likelihood.fluence import expected_photons
from orienteer.likelihood.product import DenseProduct
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import RowSpace
from orienteer.reconstruction.stopwatch import part

if TYPE_CHECKING:
    from orienteer.reconstruction.states.posterior import StatePosterior

# Limit of the brightness of a slice, relative to that of a round particle.
_BRIGHTEST = 2.0**10


def merge(
    likelihood: Likelihood, expander: Expander, rows: RowSpace, batch: Batch, store: ScoreStore,
    deposit: Deposit, pixel_weights: Array, states: "StatePosterior | None" = None,
) -> Array:  # fmt: skip
    """Maximisation and compression: add the frames, weighted, to the sums where their slices were taken.

    pixel_weights : (P,) float32, correction of the pixels times radial mean.
    states : collects how likely each model is for each frame; None: not needed.
    Returns photons (D,) float64 that the responsible rows predict at unit fluence on the scored pixels.
    """
    xp = array_namespace(batch.fluence)
    by_pixel = batch.by_pixel
    expected = xp.zeros(len(batch), dtype=xp.float64)
    # Tiles may be on any rank, so expected photons are summed in a way that does not depend on the order.
    brightest = _BRIGHTEST * max(float(likelihood.pixels.scored(likelihood.pixels.reference).sum()), 1e-9)
    # If no pixel is missing, the product of a row and a frame can be recovered from their score.
    rescores = likelihood.needs_product_to_merge and all(g.frames.missing is None for g in batch.groups)
    sees_slices = likelihood.needs_product_to_merge and not rescores
    with part("posterior"):
        mass = store.row_mass()
        # Copied once: otherwise every tile would wait for the GPU.
        on_host = to_numpy(mass)
        largest_offset = None
        if likelihood.needs_product_to_merge:
            largest_offset = expander.largest_offset(store.comm)
    if batch.counted is None:
        deposit.add_mass(slice(None), mass)
    law = _law_of_batch(likelihood, batch, largest_offset, states is not None)
    for tile in rows.tiles():
        if not on_host[tile.first : tile.last].sum() > 0:
            continue
        signal = expander.signal(tile)
        weights: Array | None = None
        if law is not None and signal is not None:
            with part("merge"):
                weighed = store.weigh(
                    tile.first, tile.last, law, expander.offsets(tile), signal, batch.weight, batch.counted
                )
                expected += in_parts(weighed.expected, brightest)
                if weighed.mass is not None:
                    deposit.add_mass(slice(tile.first, tile.last), weighed.mass)
                product = batch.groups[0].product
                assert isinstance(product, DenseProduct)
                values = product.merge_halves(weighed.numerator, weighed.factor)
                row_weights = weighed.row
        else:
            with part("posterior"):
                responsibilities = store.responsibilities(tile.first, tile.last)
                if batch.counted is not None:
                    counted = responsibilities[:, batch.counted].sum(axis=1, dtype=xp.float64)
                    deposit.add_mass(slice(tile.first, tile.last), counted)
                if states is not None and tile.model is not None:
                    states.add(tile.model, tile.first, responsibilities)
            with part("expand"):
                slices = expander.slices(rows, tile, by_pixel) if sees_slices else None
                if signal is None:
                    sliced = expander.slices(rows, tile, by_pixel)
                    signal = likelihood.pixels.scored_signal(sliced, by_pixel=by_pixel)
            with part("fluence"):
                for group in batch.groups:
                    own = xp.ascontiguousarray(responsibilities[:, group.columns])
                    expected[group.columns] += in_parts(expected_photons(own, signal), brightest)
            with part("merge"):
                scores = offsets = None
                if rescores:
                    scores, offsets = store.scores(tile.first, tile.last), expander.offsets(tile)
                values, row_weights, weights = _deposited(
                    likelihood,
                    slices,
                    batch,
                    responsibilities,
                    pixel_weights,
                    scores,
                    offsets,
                    largest_offset,
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


def _law_of_batch(
    likelihood: Likelihood, batch: Batch, largest_offset: float | None, sees_states: bool
) -> MergeLaw | None:
    """The law by which the weights of a batch follow from its scores, so that no table is made; or None.

    There is one on the GPU, for a batch of one group whose product has float16 operands, if no pixel is
    missing or has a background, and if no responsibilities are needed for states.
    """
    group = batch.groups[0]
    at_once = (
        is_on_gpu(batch.fluence)
        and len(batch.groups) == 1
        and isinstance(group.product, DenseProduct)
        and group.product.operand_form in ("half", "split")
        and group.frames.missing is None
        and likelihood.pixels.background is None
        and not sees_states
    )
    if not at_once:
        return None
    law = likelihood.merge_law(group.frames, batch.fluence, largest_offset)
    if law.largest is None:
        return None
    inverse = None if law.inverse is None else law.inverse.astype(np.float32)
    return law._replace(row_factor=law.row_factor.astype(np.float32), inverse=inverse)


def _deposited(
    likelihood: Likelihood, slices: Array | None, batch: Batch, responsibilities: Array, pixel_weights: Array,
    scores: Array | None, offsets: Array | None, largest_offset: float | None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """Numerators in the layout of slices, weights of the rows, and the weights of every pixel, or None.

    Weights of every pixel are needed if pixels are missing or have a background; otherwise they are products
    of the weights of rows and of pixels.
    scores, offsets : (T, D), (T,), from which a likelihood that needs its product recovers it; None: it is
        computed from the slices.
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
