"""Expectation and maximisation of one batch of frames: slice, score, normalise, merge, in tiles of rows.

A row is a pose of a model; the rows of model m are m K .. (m + 1) K, and the junk classes, which do not
rotate, come last.  The matrix of rows times frames exists only for the batch, whose size the planner chooses.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.likelihood.background import merged_signal, weights_of_pixels
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.expected import subtract_expected
from orienteer.likelihood.fluence import expected_photons
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.panels import Panels
from orienteer.likelihood.product import Product, SparseProduct
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.stopwatch import part
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.trilinear import insert_slices, slice_volume
from orienteer.slicing.turned import TurnedVolume

if TYPE_CHECKING:
    from orienteer.reconstruction.state_posterior import StatePosterior

# Copying the rows that hold frames pays where they are fewer than this share.
_MANY_ROWS = 0.8


@dataclass(frozen=True, eq=False)
class Poses:
    """K orientations on the device: ``matrices`` (K, 3, 3) float32, the transposes of the rotations, and
    ``log_weights`` (K,) float32, the prior."""

    matrices: Array
    log_weights: Array

    def __len__(self) -> int:
        return len(self.matrices)


@dataclass(frozen=True, eq=False)
class Group:
    """Frames of similar fluence within a batch: columns ``columns`` of the scores.

    fluence : their mean; is_even : whether all of them have it, so that no frame needs a correction.
    """

    columns: slice
    frames: FrameBatch
    product: Product
    fluence: float
    is_even: bool = True


@dataclass(frozen=True, eq=False)
class Batch:
    """D frames on the device, sorted into groups of similar fluence.

    places : (D,) places of the frames in the data set.
    fluence : (D,) float64 on the device, of each frame.
    weight : (D,) float32 on the device, how much each frame counts in the merge; None: all the same.
    """

    places: Any
    groups: tuple[Group, ...]
    fluence: Array
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def by_pixel(self) -> bool:
        """The layout in which the products want their operands."""
        return self.groups[0].product.by_pixel


@dataclass(frozen=True, eq=False)
class Tile:
    """Rows first .. last of all rows: poses ``poses`` of model ``model``, or the junk classes (None)."""

    first: int
    last: int
    model: int | None
    poses: slice


@dataclass(eq=False)
class RowSpace:
    """All rows: M models times K poses, then J junk classes, cut into tiles.

    log_prior : (M K + J,) float32 on the device.
    """

    poses: Poses
    n_models: int
    log_prior: Array
    n_junk: int = 0
    tile_rows: int = 128

    def __len__(self) -> int:
        return self.n_models * len(self.poses) + self.n_junk

    def tiles(self) -> Iterator[Tile]:
        """The rows in tiles; no tile crosses a model."""
        K = len(self.poses)
        for m in range(self.n_models):
            for first in range(0, K, self.tile_rows):
                last = min(first + self.tile_rows, K)
                yield Tile(m * K + first, m * K + last, m, slice(first, last))
        if self.n_junk:
            first = self.n_models * K
            yield Tile(first, first + self.n_junk, None, slice(0))


@dataclass(eq=False)
class Expander:
    """Makes the slices of a tile: trilinear samples of a model, or the patterns of the junk classes.

    models : (M, n, n, n) float32; junk : (J, P) float32 or None; points : the pixel list in voxels.
    """

    models: Array
    points: PointPatches
    junk: Array | None = None
    _memory: dict[tuple[int, ...], Array] = field(default_factory=dict)
    _signal: dict[int, Array] = field(default_factory=dict)
    _offsets: dict[int, Array] = field(default_factory=dict)

    def turned(self, rows: RowSpace, tile: Tile) -> TurnedVolume:
        """The slices of a tile of poses, yet to be made."""
        assert tile.model is not None
        matrices = rows.poses.matrices[tile.poses]
        return TurnedVolume(self.models[tile.model], self.points, matrices, self._memory)

    def note(self, tile: Tile, signal: Array, offsets: Array) -> None:
        """For the merge: photons (T,) of each row at unit fluence on the scored pixels, and offsets (T,)."""
        self._signal[tile.first], self._offsets[tile.first] = signal, offsets

    def offsets(self, tile: Tile) -> Array:
        """What the scores of each row of a tile were made with, (T,) float64."""
        return self._offsets[tile.first]

    def largest_offset(self) -> float | None:
        """No offset that was noted is larger; None: none was."""
        offsets = list(self._offsets.values())
        return float(array_namespace(*offsets).concatenate(offsets).max()) if offsets else None

    def signal(self, tile: Tile) -> Array | None:
        """What was noted for a tile; None: nothing."""
        return self._signal.get(tile.first)

    def slices(self, rows: RowSpace, tile: Tile, by_pixel: bool) -> Array:
        """(T, P) or (P, T) float32; the memory is used again by the next tile."""
        if tile.model is None:
            assert self.junk is not None
            return array_namespace(self.junk).ascontiguousarray(self.junk.T) if by_pixel else self.junk
        n_rows, n_points = tile.last - tile.first, len(self.points)
        shape = (n_points, n_rows) if by_pixel else (n_rows, n_points)
        out = self._memory.get(shape)
        if out is None:
            out = self._memory[shape] = array_namespace(self.models).empty(shape, dtype=np.float32)
        return slice_volume(
            self.models[tile.model], self.points, rows.poses.matrices[tile.poses], by_pixel=by_pixel, out=out
        )


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

    beta : (D,) or a number, inverse temperatures.
    """
    fused = can_fuse(likelihood, batch)
    for tile in rows.tiles():
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


@dataclass(eq=False)
class Deposit:
    """What the frames of all batches leave behind.

    sums : one accumulator of slices per model (``slicing.sums``).
    junk : (J, P, 2) float64 numerators and denominators of the junk classes, or None.
    row_mass : (rows,) float64, responsibility of every row.
    models : (M, n, n, n) float32, what the frames correct: of what they have, only what its slices have not
        is left behind.  None: all that they have.
    """

    sums: list[Any]
    junk: Array | None
    row_mass: Array
    models: Array | None = None

    def add(
        self, model: int, points: PointPatches, matrices: Array, values: Array, row_weights: Array,
        pixel_weights: Array, by_pixel: bool, weights: Array | None = None,
    ) -> None:  # fmt: skip
        """Leave merged frames behind where slices of a model with these matrices (T, 3, 3) are taken.

        values : (T, P) or (P, T) float32 merged photons, overwritten; row_weights : (T,) summed fluences.
        weights : expected photons of the radial mean where pixels are missing, shaped like values; None:
            row_weights times pixel_weights (P,).
        """
        rows = row_weights.astype(np.float32)
        if self.models is not None:
            with part("expand"):
                if not is_on_gpu(values):
                    # Late in a run few rows hold frames; of the others no slice is needed.
                    used = np.flatnonzero(rows)
                    if len(used) < _MANY_ROWS * len(rows):
                        chosen = (slice(None), used) if by_pixel else (used, slice(None))
                        matrices, rows, values = matrices[used], rows[used], values[chosen]
                        weights = None if weights is None else weights[chosen]
                slices = slice_volume(self.models[model], points, matrices, by_pixel=by_pixel)
                if weights is not None:
                    slices *= weights
                    values -= slices
                else:
                    factors = (pixel_weights, rows) if by_pixel else (rows, pixel_weights)
                    subtract_expected(values, slices, *factors)
        with part("insert"):
            insert_slices(self.sums[model], points, matrices, values, rows, pixel_weights, by_pixel, weights)

    def add_junk(
        self, classes: slice | Array, values: Array, row_weights: Array, pixel_weights: Array, by_pixel: bool,
        weights: Array | None = None,
    ) -> None:  # fmt: skip
        """Leave merged frames behind in junk classes; the other arguments are those of :meth:`add`.

        classes : (T,) each class at most once, or a slice of them.
        """
        assert self.junk is not None
        if weights is None:
            denominator = row_weights[:, None] * pixel_weights[None, :]
        else:
            denominator = weights.T if by_pixel else weights
        self.junk[classes, :, 0] += values.T if by_pixel else values
        self.junk[classes, :, 1] += denominator


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
        largest_offset = expander.largest_offset() if likelihood.needs_product_to_merge else None
    deposit.row_mass += mass
    for tile in rows.tiles():
        if not on_host[tile.first : tile.last].sum() > 0:
            continue
        with part("posterior"):
            responsibilities = store.responsibilities(tile.first, tile.last)
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
    return expected


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
