"""Search from coarse to fine: all poses of a coarse grid, and then only the fine poses below likely ones.

The first pass scores every frame at every coarse pose, as ``expectation.expect`` does.  Each frame keeps the
coarse poses that hold nearly all of its probability, and the second pass scores it only at their children,
the poses of the next finer grid below them.  The junk classes, which do not rotate, are scored in the second
pass for every frame, so that a frame is not taken for junk because the coarse grid misses its true pose.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.exact_sums import in_parts
from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.likelihood.base import Likelihood
from orienteer.orientation.pose_grid import PoseGrid
from orienteer.orientation.quaternion import to_matrix
from orienteer.posterior.blocks import BlockList, select_blocks
from orienteer.posterior.grouping import starts_of
from orienteer.posterior.listed import BlockResponsibilities, normalise_blocks
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.responsibilities import Responsibilities
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect
from orienteer.reconstruction.orienting.listed_rows import (
    merge_listed,
    owners_of,
    pair_of_values,
    score_listed,
    sum_by,
    take_pairs,
)
from orienteer.reconstruction.orienting.rows import Poses, RowSpace
from orienteer.reconstruction.states.posterior import StatePosterior

# Most scores of the second pass that are held at once; their lists take ten times as much memory.
_MOST_SCORES = {"cpu": 1 << 26, "cuda": 1 << 28}
_FEWEST_SCORES, _BYTES_PER_SCORE = 1 << 20, 44


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of the frames of a batch on their own fine rows.

    blocks : which fine rows belong to which frames.
    values : (n_values,) float32 log-likelihoods.
    unit_photons : (T,) float64, photons that each of the rows predicts at unit fluence on the scored pixels.
    """

    blocks: BlockList
    values: Array
    unit_photons: Array


class FineSearch:
    """A coarse grid, the finer grid below it, and the search in both.

    parents : the coarse rows: M models times K poses, then J junk classes.
    grid : the coarse PoseGrid.
    kept_mass : share of each frame's probability that its kept coarse poses hold; only their children are
        searched.
    score_bytes : memory that the scores of a batch may take; 0: a default for the device.
    tile_rows : fine rows that are sliced and scored together; 0: as many as coarse ones.
    comm : ranks that share the coarse rows of the same frames; each searches below its own rows.
    same_parts : whether frames are searched in the same pieces on any number of ranks.  Otherwise more ranks
        use fewer pieces, because each has memory for its own scores.

    poses, quaternions : the L fine poses, on the device and in float64.  Fine rows are numbered like coarse
        ones: models times fine poses, then the junk classes.
    """

    def __init__(
        self, parents: RowSpace, grid: PoseGrid, *, kept_mass: float = 0.999, score_bytes: int = 0,
        tile_rows: int = 0, comm: Comm = SERIAL, same_parts: bool = False,
    ) -> None:  # fmt: skip
        self.parents, self.kept_mass, self.comm, self.same_parts = parents, kept_mass, comm, same_parts
        device: DeviceName = "cuda" if is_on_gpu(parents.log_prior) else "cpu"
        self._device, self.most_scores = device, _MOST_SCORES[device]
        if score_bytes:
            self.most_scores = max(_FEWEST_SCORES, score_bytes // _BYTES_PER_SCORE)
        self.tile_rows = tile_rows or parents.tile_rows
        xp: Any = array_namespace(parents.log_prior)
        fine = grid.fine()
        self.quaternions: NDArray[np.float64] = fine.quaternions
        matrices = np.ascontiguousarray(np.swapaxes(to_matrix(fine.quaternions), 1, 2))
        self.poses = Poses(
            xp.asarray(matrices.astype(np.float32)), xp.asarray(fine.log_weights.astype(np.float32))
        )
        starts = [grid.child_start[:-1] + m * len(fine) for m in range(parents.n_models)]
        self._child_start = xp.asarray(np.concatenate([*starts, [parents.n_models * len(fine)]]))

    @property
    def rows(self) -> RowSpace:
        """The fine rows; each model and junk class has the same prior as in the coarse rows."""
        parents, K = self.parents, len(self.parents.poses)
        M, xp = parents.n_models, array_namespace(parents.log_prior)
        classes = parents.log_prior[: M * K : K] - parents.poses.log_weights[0]
        models = (classes[:, None] + self.poses.log_weights).reshape(-1)
        log_prior = xp.concatenate([models, parents.log_prior[M * K :]]).astype(np.float32)
        return RowSpace(self.poses, M, log_prior, parents.n_junk, parents.tile_rows)

    def mass_of_parents(self, mass: Array) -> Array:
        """Sums (M K + J,) float64 of the masses of all fine rows over the children of each coarse row."""
        xp = array_namespace(mass)
        n_fine = self.parents.n_models * len(self.poses)
        total = xp.concatenate([xp.zeros(1), xp.cumsum(mass[:n_fine])])
        return xp.concatenate([xp.diff(total[self._child_start]), mass[n_fine:]])

    # The two passes ---------------------------------------------------------------------------------------

    def coarse(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, beta: float | Array
    ) -> Responsibilities:
        """First pass: probabilities of the frames over the coarse poses (of this rank), without junk."""
        rows = self.parents
        n = rows.n_models * len(rows.poses)
        poses = RowSpace(rows.poses, rows.n_models, rows.log_prior[:n], 0, rows.tile_rows)
        store = ScoreStore(n, len(batch), self._device, self.kept_mass, self.comm)
        expect(likelihood, expander, poses, batch, beta, store)
        return store.kept()

    def blocks(self, coarse: Responsibilities) -> BlockList:
        """The fine rows below the coarse rows that each frame keeps, and the junk classes.

        Frames that keep nothing are left out.
        """
        frames = array_namespace(coarse.row).nonzero(coarse.start[1:] > coarse.start[:-1])[0]
        blocks = select_blocks(coarse, self._child_start)
        if self.comm.size == 1 or not self.parents.n_junk:
            return self._with_junk(blocks, frames)
        # Junk classes are scored once: by the first rank, for all frames that keep poses on any rank.
        xp = array_namespace(coarse.row)
        kept_somewhere = self.comm.max((coarse.start[1:] > coarse.start[:-1]).astype(np.int32))
        return self._with_junk(blocks, xp.nonzero(kept_somewhere)[0]) if self.comm.is_first else blocks

    def in_pieces(self, coarse: Responsibilities) -> Iterator[Responsibilities]:
        """The same frames in pieces, each small enough that its scores fit in memory.

        Frames with narrow posteriors fit in one piece; faint frames, which keep nearly every pose, need many.
        """
        xp = array_namespace(coarse.row)
        children = starts_of(xp.diff(self._child_start)[coarse.row])
        n_scores = xp.diff(children[coarse.start])
        if self.same_parts:  # the last bits of the merged sums depend on which frames are in one piece
            n_scores = self.comm.sum(n_scores)
        scores, starts = to_numpy(starts_of(n_scores)), to_numpy(coarse.start)
        first = 0
        while first < coarse.n_frames:
            last = int(np.searchsorted(scores, scores[first] + self.most_scores, side="right")) - 1
            last = min(max(last, first + 1), coarse.n_frames)
            if not self.same_parts:  # all ranks must work on the same piece at the same time
                last = int(self.comm.min(last))
            a, b = int(starts[first]), int(starts[last])
            start = xp.clip(coarse.start, a, b) - a
            yield Responsibilities(coarse.n_rows, start, coarse.row[a:b], coarse.probability[a:b])
            first = last

    def score(self, likelihood: Likelihood, expander: Expander, batch: Batch, blocks: BlockList) -> Scored:
        """Second pass: scores of each frame on its own fine rows."""
        xp = array_namespace(batch.fluence)
        values = xp.empty(blocks.n_values, dtype=np.float32)
        unit = xp.empty(blocks.n_rows, dtype=np.float64)
        first_row = first_value = 0
        for tile, model in self._tiles(blocks):
            slices = self._slices(expander, tile, model, batch.by_pixel)
            own_values = slice(first_value, first_value + tile.n_values)
            values[own_values] = score_listed(likelihood, slices, batch, tile)
            unit[first_row : first_row + tile.n_rows] = likelihood.pixels.scored_signal(
                slices, by_pixel=batch.by_pixel
            )
            first_row, first_value = first_row + tile.n_rows, own_values.stop
        return Scored(blocks, values, unit)

    def posterior(
        self, scored: Scored, beta: float | Array, kept_mass: float = 0.999
    ) -> BlockResponsibilities:
        """Tempered posteriors of the frames over their fine rows."""
        return normalise_blocks(scored.values, scored.blocks, self.rows.log_prior, beta, kept_mass, self.comm)

    def merge(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, scored: Scored,
        found: BlockResponsibilities, deposit: Deposit, pixel_weights: Array,
        states: StatePosterior | None = None,
    ) -> Array:  # fmt: skip
        """Add the frames, weighted, to the sums where their fine slices were taken.

        deposit : its ``row_mass`` is that of coarse rows: each gets the mass of its children.
        states : collects how likely each model is for each frame; None: not needed.
        Returns photons (D,) float64 that the responsible rows predict at unit fluence on the scored pixels.
        """
        blocks, xp = scored.blocks, array_namespace(found.probability)
        self._add_row_mass(found, deposit, batch.counted)
        if states is not None:
            states.add_listed(blocks, found.probability, len(self.poses))
        owners = owners_of(blocks)
        photons = found.probability * scored.unit_photons[owners.row]
        expected = sum_by(owners.frame, photons, blocks.n_frames)
        del owners, photons
        likely = xp.bincount(pair_of_values(blocks)[found.probability > 0], minlength=blocks.n_pairs) > 0
        kept = take_pairs(blocks, likely)
        probability = found.probability[kept.values]
        first_value = 0
        for tile, model in self._tiles(kept.blocks):
            own = probability[first_value : first_value + tile.n_values]
            first_value += tile.n_values
            slices = None
            if likelihood.needs_product_to_merge:
                slices = self._slices(expander, tile, model, batch.by_pixel)
            merged = merge_listed(likelihood, slices, batch, tile, own, pixel_weights)
            if model is None:
                deposit.add_junk(
                    tile.row - self.parents.n_models * len(self.poses), merged.values, merged.row_weights,
                    pixel_weights, batch.by_pixel, merged.weights,
                )  # fmt: skip
                continue
            deposit.add(
                model, expander.points, self._matrices(tile, model), merged.values, merged.row_weights,
                pixel_weights, batch.by_pixel, merged.weights,
            )  # fmt: skip
        return expected

    def step(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, beta: float | Array,
        fine_beta: float | Array, deposit: Deposit | None, pixel_weights: Array,
        states: StatePosterior | None = None,
    ) -> tuple[Posterior, Array | None]:  # fmt: skip
        """Both passes and the merge of a batch: the same as ``expect`` and ``merge`` on one grid.

        beta, fine_beta : inverse temperatures of the first and second pass.
        deposit : None: orient only.
        states : as in :meth:`merge`.
        Returns the posterior, whose ``best_row`` is a fine row, and the predicted photons as :meth:`merge`.
        """
        posteriors, expected = [], array_namespace(batch.fluence).zeros(len(batch), dtype=np.float64)
        for part in self.in_pieces(self.coarse(likelihood, expander, batch, beta)):
            scored = self.score(likelihood, expander, batch, self.blocks(part))
            found = self.posterior(scored, fine_beta, self.kept_mass)
            posteriors.append(found.posterior)
            if deposit is not None:
                expected += self.merge(
                    likelihood, expander, batch, scored, found, deposit, pixel_weights, states
                )
        if deposit is None:
            return joined_posteriors(posteriors), None
        if states is not None:
            states.join(self.comm)
        return joined_posteriors(posteriors), self.comm.sum(expected)

    # Parts ------------------------------------------------------------------------------------------------

    def _with_junk(self, blocks: BlockList, frames: Array) -> BlockList:
        J, F = self.parents.n_junk, len(frames)
        if not J:
            return blocks
        xp = array_namespace(blocks.row)
        junk, n_models = xp.arange(J), self.parents.n_models
        return BlockList(
            blocks.n_frames,
            xp.concatenate([blocks.coarse_row, n_models * len(self.parents.poses) + junk]),
            xp.concatenate([blocks.block_start, blocks.n_rows + 1 + junk]),
            xp.concatenate([blocks.row, n_models * len(self.poses) + junk]),
            xp.concatenate([blocks.pair_start, blocks.n_pairs + F * (1 + junk)]),
            xp.concatenate([blocks.frame, xp.tile(frames.astype(blocks.frame.dtype), J)]),
        )

    def _tiles(self, blocks: BlockList) -> Iterator[tuple[BlockList, int | None]]:
        """Tiles of whole blocks of one model each, or of junk classes (None)."""
        start, coarse = blocks.on_host[0], to_numpy(blocks.coarse_row)
        # Each tile of coarse rows belongs to one rank.  No fine tile crosses from one into the next, so that
        # the same rows are scored together, with the same bits, on any number of ranks.
        above = list(self.parents.tiles())
        bounds = [*np.searchsorted(coarse, [tile.first for tile in above]).tolist(), len(coarse)]
        for tile, first, end in zip(above, bounds[:-1], bounds[1:], strict=True):
            while first < end:
                last = int(np.searchsorted(start, start[first] + self.tile_rows, side="right")) - 1
                last = min(max(last, first + 1), end)
                yield blocks.tile(first, last), tile.model
                first = last

    def _matrices(self, tile: BlockList, model: int) -> Array:
        return self.poses.matrices[tile.row - model * len(self.poses)]

    def _slices(self, expander: Expander, tile: BlockList, model: int | None, by_pixel: bool) -> Array:
        if model is not None:
            return expander.slices_of(model, self._matrices(tile, model), by_pixel)
        assert expander.junk is not None
        junk = expander.junk[tile.row - self.parents.n_models * len(self.poses)]
        return array_namespace(junk).ascontiguousarray(junk.T) if by_pixel else junk

    def _add_row_mass(
        self, found: BlockResponsibilities, deposit: Deposit, counted: Array | None
    ) -> None:  # fmt: skip
        blocks, xp = found.blocks, array_namespace(found.probability)
        if counted is not None:
            own = xp.where(counted[owners_of(blocks).frame], found.probability, np.float32(0))
            found = replace(found, probability=own)
        # The fine rows of a coarse row are contiguous, so its mass is a difference of running sums.
        total = xp.concatenate([xp.zeros(1), xp.cumsum(in_parts(found.row_mass(), 2 * blocks.n_frames))])
        deposit.add_mass(blocks.coarse_row, xp.diff(total[blocks.block_start]))


def joined_posteriors(parts: list[Posterior]) -> Posterior:
    """Posteriors of all frames from those of parts; each frame is known in one part only."""
    joined = parts[0]
    xp = array_namespace(joined.entropy)
    for part in parts[1:]:
        known = xp.isfinite(part.log_evidence)
        names = [field.name for field in fields(Posterior)]
        joined = Posterior(*(xp.where(known, getattr(part, n), getattr(joined, n)) for n in names))
    return joined
