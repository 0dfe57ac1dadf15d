"""Score and merge only listed pairs of rows and frames, for the search from coarse to fine and refinement.

These are the twins of ``expectation.score_tile`` and ``maximisation.merge``, for frames that each have a few
rows of their own.  Values are stored pair after pair, see :class:`orienteer.posterior.blocks.BlockList`.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.likelihood.background import merged_signal, weights_of_pixels
from orienteer.likelihood.base import Likelihood, fluence_steps
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.product import SparseProduct, listed_merge, listed_scores
from orienteer.posterior.blocks import BlockList
from orienteer.posterior.grouping import owner_of, starts_of
from orienteer.reconstruction.frames.batch import Batch, Group
from orienteer.slicing.turned import TurnedVolume
from orienteer.source.sparse_photons import SparsePhotons

# Sums over frames are counted in this part of a photon: whole numbers add up to the same in any order.
_PARTS = 2.0**30
# An empty list of forbidden pixels.  A likelihood that sees one returns denominators of every pair.  The same
# list serves all frames, because checking a new one would wait for the GPU.
_FORBIDS = SparsePhotons(
    np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), n_pixels=0
)


class Taken(NamedTuple):
    """Some pairs of a list of blocks.

    blocks : these pairs, with the blocks and rows that have any of them.
    rows : (T,) places of these rows in the whole list; None: all of them.
    values : (n_values,) places of their values in the whole list; None: all of them.
    """

    blocks: BlockList
    rows: Array | None
    values: Array | None


def take_pairs(blocks: BlockList, chosen: Array) -> Taken:
    """The pairs where ``chosen`` (n_pairs,) is true."""
    xp = array_namespace(chosen)
    before = starts_of(chosen)
    count = xp.diff(before[blocks.pair_start])
    some, pair = xp.nonzero(count)[0], xp.nonzero(chosen)[0]
    block_start, pair_start = starts_of(xp.diff(blocks.block_start)[some]), starts_of(count[some])
    on_host = to_numpy(block_start), to_numpy(pair_start)
    rows = _ranges(blocks.block_start[some], block_start, int(on_host[0][-1]))
    sub = BlockList(
        blocks.n_frames,
        blocks.coarse_row[some],
        block_start,
        blocks.row[rows],
        pair_start,
        blocks.frame[pair],
        on_host,
    )
    return Taken(sub, rows, _ranges(blocks.value_start[pair], sub.value_start, sub.n_values))


def pair_of_values(blocks: BlockList) -> Array:
    """The pair of every value, (n_values,) int64."""
    return owner_of(blocks.value_start, blocks.n_values)


class Owners(NamedTuple):
    """What every value belongs to: a listed row (0 .. T) and a frame, (n_values,) int64 each."""

    row: Array
    frame: Array


def owners_of(blocks: BlockList) -> Owners:
    """Row and frame of every value."""
    xp = array_namespace(blocks.row)
    pair = pair_of_values(blocks)
    row = blocks.block_start[blocks.pair_block[pair]] + xp.arange(len(pair)) - blocks.value_start[pair]
    return Owners(row, blocks.frame[pair].astype(np.int64))


def sum_by(owner: Array, values: Array, n: int) -> Array:
    """Sums of the values of each of n owners, (n,) float64; they do not depend on the order of the values."""
    xp = array_namespace(values)
    whole = xp.round(values.astype(np.float64) * _PARTS)
    if not is_on_gpu(values):
        return np.bincount(owner, weights=whole, minlength=n) / _PARTS
    from cupyx import scatter_add

    # CuPy's bincount first finds the largest owner, and waits for the GPU.  Sums of uint64 wrap around, so
    # that negative numbers add up correctly, too.
    total = xp.zeros(n, dtype=np.uint64)
    scatter_add(total, owner, whole.astype(np.int64).view(np.uint64))
    return total.view(np.int64) / _PARTS


def score_listed(
    likelihood: Likelihood, slices: Array | TurnedVolume, batch: Batch, blocks: BlockList,
    *, are_as_bright: bool = False,
) -> Array:  # fmt: skip
    """Log-likelihoods (n_values,) float32 of the listed pairs.

    slices : (T, P) or (P, T) float32 in the layout of the batch, one for every row of the blocks; or a volume
        yet to be sliced, if ``can_fuse``.
    are_as_bright : whether each slice was already multiplied by the fluence of its frame over that of the
        group; otherwise scores are corrected for the fluence of the frame, to first order.
    """
    xp = array_namespace(batch.fluence)
    values = xp.empty(blocks.n_values, dtype=np.float32)
    for group in batch.groups:
        part, places = _of_group(blocks, group, len(batch))
        if not part.n_pairs:
            continue
        own = _rows(slices, places.rows, batch.by_pixel)
        as_bright = replace(group, is_even=True) if are_as_bright else group
        found = _score_group(likelihood, own, batch, as_bright, part)
        if places.values is None:
            return found
        values[places.values] = found
    return values


def _score_group(likelihood: Likelihood, slices: Any, batch: Batch, group: Group, blocks: BlockList) -> Array:
    xp = array_namespace(batch.fluence)
    by_pixel, owners = batch.by_pixel, owners_of(blocks)
    operand, offsets = likelihood.expand(slices, group.fluence, by_pixel)
    lists = *blocks.on_host, blocks.frame
    product = listed_scores(group.product, operand, *lists)  # type: ignore[arg-type]
    # Every value is treated as a frame of its own that is compared with a single row.  The difference between
    # the offset of that row and the mean is passed as ``missing``, the part that the frame does not see.
    middle = xp.asarray(offsets.mean()).reshape(1)
    unseen = (middle - offsets)[owners.row]
    if group.frames.missing is not None:
        per_pixel = likelihood.expand_missing(slices, group.fluence, by_pixel)
        per_pixel = per_pixel if by_pixel else xp.ascontiguousarray(per_pixel.T)
        unseen = unseen + listed_scores(_missing_of(group.frames), per_pixel, *lists)
    frames = _frame_per_value(group.frames, owners.frame)
    slopes = None if group.is_even else likelihood.fluence_slopes(slices, group.fluence, by_pixel)
    if slopes is not None:
        change = fluence_steps(frames, group.fluence, batch.fluence[group.columns][owners.frame])
        product = (product - slopes[owners.row] * change).astype(np.float32)
    shared = likelihood.needs_fluence_groups
    scores = likelihood.scores(
        product[None], middle, frames,
        fluence=group.fluence if shared else batch.fluence[group.columns][owners.frame],
        missing=unseen.astype(np.float32)[None],
    )  # fmt: skip
    return scores[0]


class Merged(NamedTuple):
    """Sums of the merged frames on the listed rows.

    values : numerators, in the layout of the batch.
    row_weights : (T,) float64.
    weights : of every pixel, in the layout of the batch, if single frames forbid pixels or there is a
        background; else None.
    """

    values: Array
    row_weights: Array
    weights: Array | None


def merge_listed(
    likelihood: Likelihood, slices: Array | None, batch: Batch, blocks: BlockList, probability: Array,
    pixel_weights: Array,
) -> Merged:  # fmt: skip
    """Merge frames on their listed rows, each weighted by its probability.

    slices : of the listed rows; needed only by the Gaussian likelihood.
    probability : (n_values,) float32.
    """
    xp = array_namespace(probability)
    by_pixel, T = batch.by_pixel, blocks.n_rows
    shape = (len(pixel_weights), T) if by_pixel else (T, len(pixel_weights))
    total = weights = None
    has_weights = likelihood.pixels.background is not None or any(
        group.frames.missing is not None for group in batch.groups
    )
    row_weights = xp.zeros(T, dtype=np.float64)
    for group in batch.groups:
        part, places = _of_group(blocks, group, len(batch))
        if not part.n_pairs:
            continue
        own = probability if places.values is None else probability[places.values]
        rows = slice(None) if places.rows is None else places.rows
        where = (slice(None), rows) if by_pixel else (rows, slice(None))
        sliced = None if slices is None else _rows(slices, places.rows, by_pixel)
        merged, weight, of_pixels, lost = _merge_group(
            likelihood, sliced, batch, group, part, own, pixel_weights
        )
        row_weights[rows] += weight
        if places.rows is None and total is None:
            total = merged
        else:
            total = xp.zeros(shape, dtype=np.float32) if total is None else total
            total[where] += merged
        if has_weights:
            weights = xp.zeros(shape, dtype=np.float32) if weights is None else weights
            weights[where] += weights_of_pixels(of_pixels, weight, lost, by_pixel)
    if total is None:
        total = xp.zeros(shape, dtype=np.float32)
    return Merged(total, row_weights, weights)


def _merge_group(
    likelihood: Likelihood, slices: Array | None, batch: Batch, group: Group, blocks: BlockList,
    probability: Array, pixel_weights: Array,
) -> tuple[Array, Array, Array, Array | None]:  # fmt: skip
    """Merged photons, weights of rows (T,) and of pixels (P,), and the weights lost at forbidden pixels."""
    by_pixel, owners = batch.by_pixel, owners_of(blocks)
    lists = *blocks.on_host, blocks.frame
    product = None
    if likelihood.needs_product_to_merge:
        operand = likelihood.expand(slices, group.fluence, by_pixel)[0]
        product = listed_scores(group.product, operand, *lists)[None]  # type: ignore[arg-type]
    if batch.weight is not None:
        probability = probability * batch.weight[group.columns][owners.frame]
    weights = likelihood.merge_weights(
        probability[None], _frame_per_value(group.frames, owners.frame, masked=True),
        fluence=batch.fluence[group.columns][owners.frame], product=product,
    )  # fmt: skip
    denominator: Any = weights.denominator
    merged = listed_merge(group.product, weights.numerator[0], *lists)  # type: ignore[arg-type]
    lost = None
    if group.frames.missing is not None:
        lost = _hidden(group, denominator[0], lists, by_pixel)
    if likelihood.pixels.background is not None:
        shown = sum_by(owners.row, weights.numerator[0], blocks.n_rows)
        if group.frames.missing is not None:
            hidden = _hidden(group, weights.numerator[0], lists, by_pixel)
            shown = (shown[None, :] if by_pixel else shown[:, None]) - hidden
        merged, share = merged_signal(merged, shown, likelihood.pixels, group.fluence, by_pixel)
        pixel_weights = pixel_weights * share
    return merged, sum_by(owners.row, denominator[0], blocks.n_rows), pixel_weights, lost


def _hidden(group: Group, values: Array, lists: tuple[Any, ...], by_pixel: bool) -> Array:
    """Sums of the listed values at the pixels that their frames forbid, in the layout of the batch."""
    hidden = listed_merge(_missing_of(group.frames), values, *lists)
    return hidden if by_pixel else hidden.T


def _of_group(blocks: BlockList, group: Group, n_frames: int) -> tuple[BlockList, Taken]:
    """The pairs of a group of frames: with frames counted from the start of the group, and as taken."""
    first, last = group.columns.start, group.columns.stop
    if (first, last) == (0, n_frames):
        return blocks, Taken(blocks, None, None)
    taken = take_pairs(blocks, (blocks.frame >= first) & (blocks.frame < last))
    return replace(taken.blocks, n_frames=last - first, frame=taken.blocks.frame - first), taken


def _rows(slices: Any, rows: Array | None, by_pixel: bool) -> Any:
    if rows is None:
        return slices
    if isinstance(slices, TurnedVolume):
        return replace(slices, matrices=slices.matrices[rows])
    if len(rows) == slices.shape[1 if by_pixel else 0]:
        return slices
    return array_namespace(slices).take(slices, rows, axis=1 if by_pixel else 0)


def _frame_per_value(frames: FrameBatch, frame: Array, masked: bool = False) -> FrameBatch:
    """One frame without pixels for each value, with the sums of the frame that the value belongs to.

    frame : (n_values,) int64.
    masked : mark the frames as forbidding pixels, so that likelihoods return the denominators of every pair.
    """
    xp = array_namespace(frames.squares)
    sums = (frames.scored_photons[frame], frames.photons_total[frame], frames.squares[frame])
    pixels = xp.empty((len(frame), 0), dtype=np.float32)
    return FrameBatch(pixels, None, _FORBIDS if masked else None, 0, 0, *sums)


def _missing_of(frames: FrameBatch) -> SparseProduct:
    """A product over the forbidden pixels of frames instead of their photons; operands are by pixel."""
    return SparseProduct(replace(frames, dense=None, photons=frames.missing, missing=None))


def _ranges(first: Array, start: Array, n_entries: int) -> Array:
    """first[i], first[i] + 1, ... for every i: start[i + 1] - start[i] numbers each, n_entries in all."""
    xp = array_namespace(first)
    owner = owner_of(start, n_entries)
    return first[owner] + xp.arange(len(owner)) - start[owner]
