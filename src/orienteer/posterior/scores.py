"""ScoreStore: tempered scores of a batch of frames against all orientations, and probabilities from them."""

from typing import Any, NamedTuple

import numpy as np

from orienteer.compute.arrays import Array, DeviceName, choose_device, is_on_gpu, namespace_of_device
from orienteer.compute.exact_sums import round_to_parts
from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.errors import OrienteerError
from orienteer.likelihood.base import MergeLaw
from orienteer.likelihood.matrix_cuda import half_scale
from orienteer.likelihood.score_law import ScoreLaw
from orienteer.posterior.grouping import starts_of
from orienteer.posterior.joining import Best, join_best
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.responsibilities import Responsibilities
from orienteer.posterior.threshold import N_BINS, kept_of_counts, threshold_of_counts

_ROWS_PER_SUM = 256  # rows of a partial sum, all of one tile


class Weighed(NamedTuple):
    """What frames deposit into a tile of rows.

    numerator : (T, D) float16; times ``factor``, it multiplies the photon counts.
    row : (T,) float64, weight of each row in the denominator.
    expected : (D,) float64, photons that the rows of the tile expect of each frame at unit fluence.
    mass : (T,) float64, responsibility of each row for the counted frames; None if not asked for.
    """

    numerator: Array
    factor: float
    row: Array
    expected: Array
    mass: Array | None


class ScoreStore:
    """Scores of n_frames frames against n_rows orientations, tile after tile, then responsibilities.

    Every entry is stored as its distance below the frame's maximum in its tile, together with this maximum:
    in float32 on the CPU, in float16 on the GPU, where entries within 16 nats of the best have errors below
    0.01 nat.  What is stored of a tile therefore does not depend on other tiles, which may be on other ranks.
    Evidence and entropy are summed tile by tile, before rounding; the sums of the tiles are added such that
    their order makes no difference.

    kept_mass : share of each frame's probability that is kept; the rest, its least likely rows, becomes 0.
    comm : ranks that divide the rows of the same frames among them.  Each adds its own rows; ``finish`` is
        then collective and gives the posterior over all rows, while results per row are those of this rank.
    """

    def __init__(
        self, n_rows: int, n_frames: int, device: DeviceName = "cpu", kept_mass: float = 0.999,
        comm: Comm = SERIAL,
    ) -> None:  # fmt: skip
        if not (n_rows > 0 and n_frames > 0 and 0 < kept_mass <= 1):
            raise OrienteerError(
                f"scores of {n_frames} frames against {n_rows} orientations with a kept mass of "
                f"{kept_mass:g} cannot be kept.",
                "Give at least one of each, and a mass above 0 and up to 1.",
            )
        self.n_rows, self.n_frames, self.kept_mass, self.comm = n_rows, n_frames, kept_mass, comm
        self._xp: Any = namespace_of_device(device)
        self._kernels: Any
        dtype: Any
        if choose_device(device) == "cuda":
            from orienteer.posterior import _scores_cuda

            self._kernels, dtype, stride = _scores_cuda, np.float16, _scores_cuda.stride_of(n_frames)
        else:
            from orienteer.posterior import _scores_numba

            self._kernels, dtype, stride = _scores_numba, np.float32, n_frames
        self._below = self._xp.empty((n_rows, stride), dtype=dtype)[:, :n_frames]
        xp, D = self._xp, n_frames
        self._tile_of_row = np.full(self.n_rows, -1, dtype=np.int32)
        self._tile_tops: list[Array] = []
        self._tile_totals: list[Array] = []
        self._tile_moments: list[Array] = []
        self._first_rows: list[int] = []
        self._log_priors: list[Array] = []
        self._reference: Array | None = None
        self._ones = xp.ones(D, dtype=np.float32)
        self._top = xp.full(D, -3e38, dtype=np.float32)
        self._best_row = xp.zeros(D, dtype=np.int64)
        self._best_score = xp.full(D, -np.inf, dtype=np.float32)
        self._posterior: Posterior | None = None

    def add(
        self, first_row: int, scores: Array, log_prior: Array, inverse_temperature: Array,
        law: ScoreLaw | None = None,
    ) -> None:  # fmt: skip
        """Add the scores of rows first_row .. first_row + T.  Tiles may come in any order, each row once.

        scores : (T, D) float32 log-likelihoods on the device of the store.
        log_prior : (T,) logarithm of the rows' weights; -inf: the row is impossible.
        inverse_temperature : (D,) or a number, the same for all tiles.
        law : turns ``scores`` into scores if they are products; on the GPU, while they are stored.
        """
        xp = self._xp
        T = self._check_tile(first_row, scores, log_prior)
        log_prior = xp.ascontiguousarray(log_prior, dtype=np.float32)
        beta = xp.asarray(inverse_temperature, dtype=np.float32)
        beta = xp.ascontiguousarray(xp.broadcast_to(beta, (self.n_frames,)))
        options: dict[str, Any] = {}
        scores = xp.ascontiguousarray(scores, dtype=np.float32)
        if law is not None and is_on_gpu(scores):
            options["law"] = law
        elif law is not None:
            scores, law = law.scores(scores, xp.empty_like(scores)), None
        if self._reference is None:
            first = scores[:1]
            if law is not None:
                first = law._replace(per_row=law.per_row[:1]).scores(first, xp.empty_like(first))
            self.refer(first[0], beta)
        tile_top = xp.empty(self.n_frames, dtype=np.float32)
        total, moment = xp.empty(self.n_frames), xp.empty(self.n_frames)
        self._kernels.add_tile(
            scores, first_row, self._reference, log_prior, beta, self._below,
            tile_top, total, moment, self._top, self._best_row, self._best_score, **options,
        )  # fmt: skip
        self._tile_of_row[first_row : first_row + T] = len(self._tile_tops)
        self._tile_tops.append(tile_top)
        self._tile_totals.append(total)
        self._tile_moments.append(moment)
        self._first_rows.append(first_row)
        self._log_priors.append(log_prior)
        self._beta = beta

    def refer(self, scores: Array, inverse_temperature: Array) -> None:
        """Set scores (D,), close to all others, that are subtracted so that differences keep their digits.

        By default it is the first row that is added; ranks that divide the rows must set the same one.
        """
        xp = self._xp
        beta = xp.broadcast_to(xp.asarray(inverse_temperature, dtype=np.float32), (self.n_frames,))
        # Whole nats, because a row scored alone may differ in its last bits from one scored in a tile.
        self._reference = xp.round(xp.where(xp.isfinite(scores), scores, np.float32(0))).astype(np.float32)
        self._reference_term = beta.astype(np.float64) * self._reference

    def _check_tile(self, first_row: int, scores: Array, log_prior: Array) -> int:
        T = len(scores)
        if scores.shape != (T, self.n_frames) or log_prior.shape != (T,) or T == 0:
            raise OrienteerError(
                f"a tile of scores for {self.n_frames} frames needs shapes (T, {self.n_frames}) and (T,); "
                f"got {scores.shape} and {log_prior.shape}."
            )
        if not 0 <= first_row <= first_row + T <= self.n_rows:
            raise OrienteerError(f"rows {first_row} to {first_row + T} do not lie within {self.n_rows} rows.")
        if self._posterior is not None or (self._tile_of_row[first_row : first_row + T] >= 0).any():
            raise OrienteerError(
                f"rows {first_row} to {first_row + T} come twice, or after the batch was finished.",
                "Use a new store for every batch of frames.",
            )
        return T

    def finish(self) -> Posterior:
        """The posterior of every frame over the rows that were added; rows never added are impossible."""
        if self._posterior is not None:
            return self._posterior
        if self._reference is None:
            raise OrienteerError("there are no scores to make a posterior from.", "Add some first.")
        xp, D = self._xp, self.n_frames
        best = join_best(self.comm, Best(self._top, self._best_row, self._best_score))
        self._final_top = best.top
        self._offset = xp.zeros((1, D), dtype=np.float32)
        if self._tile_tops:
            self._offset = xp.stack(self._tile_tops) - self._final_top
        self._tiles = xp.asarray(self._tile_of_row)
        total, moment = self.comm.sum(self._sums_of_tiles())
        counts = xp.zeros((N_BINS + 1, D), dtype=np.int32)
        self._kernels.count_distances(self._below, self._tiles, self._offset, counts)
        self._lowest, n_kept = threshold_of_counts(self.comm.sum(counts), total, self.kept_mass)
        kept = self.comm.sum(self._kept_sum())
        possible = self._possible = total > 0
        self._n_own = n_kept if self.comm.size == 1 else kept_of_counts(counts, self._lowest)
        safe = xp.where(possible, total, 1)
        self._factor = xp.where(possible, 1 / xp.where(possible, kept, 1), 0).astype(np.float32)
        log_evidence = xp.log(safe) + best.top.astype(np.float64) + self._reference_term
        self._posterior = Posterior(
            log_evidence=xp.where(possible, log_evidence, -np.inf),
            best_row=xp.where(possible, best.row, 0),
            best_score=best.score,
            entropy=xp.where(possible, xp.log(safe) - moment / safe, 0),
            kept_mass=xp.where(possible, xp.minimum(kept / safe, 1), 0),
        )
        return self._posterior

    def _sums_of_tiles(self) -> Array:
        """Sums of e^x and x e^x over distances x below the best, of the rows here: (2, D) float64."""
        xp = self._xp
        if not self._tile_tops:
            return xp.zeros((2, self.n_frames))
        total, moment = xp.stack(self._tile_totals), xp.stack(self._tile_moments)
        self._tile_totals.clear()  # they are large; all that follows works in place
        self._tile_moments.clear()
        # The sums of a tile are relative to its own top; the shift is from there to the top of all tiles.
        shift = xp.stack(self._tile_tops).astype(np.float64)
        shift -= self._final_top
        moment += shift * total
        factor = xp.exp(shift, out=shift)
        total *= factor
        moment *= factor
        return xp.stack([round_to_parts(each, self.n_rows).sum(axis=0) for each in (total, moment)])

    def _kept_sum(self) -> Array:
        """Sum of e^x over the rows here that are kept, (D,) float64."""
        bounds = [
            (first, min(first + _ROWS_PER_SUM, start + len(prior)))
            for start, prior in zip(self._first_rows, self._log_priors, strict=True)
            for first in range(start, start + len(prior), _ROWS_PER_SUM)
        ]
        parts = self._xp.asarray(np.array(bounds, dtype=np.int32).reshape(-1, 2).T.copy())
        sums = self._xp.empty((len(bounds), self.n_frames), dtype=np.float64)
        self._kernels.kept_sums(self._below, self._tiles, self._offset, self._lowest, *parts, sums)
        return round_to_parts(sums, self.n_rows).sum(axis=0)

    def responsibilities(self, first_row: int, last_row: int) -> Array:
        """Probabilities of rows first_row .. last_row, (T, D) float32; a frame sums to 1 over all rows."""
        self.finish()
        out = self._xp.empty((self._rows_between(first_row, last_row), self.n_frames), dtype=np.float32)
        self._kernels.responsibilities(
            self._below, self._tiles, self._offset, self._lowest, self._factor, first_row, out
        )
        return out

    def scores(self, first_row: int, last_row: int) -> Array:
        """Log-likelihoods (T, D) float32 of a tile that was added, to 0.01 nat / inverse temperature.

        Entries too far below the best to be kept have no score: -inf.
        """
        tile = self._tile_between(first_row, last_row)
        log_prior = self._log_priors[tile]
        out = self._xp.empty((last_row - first_row, self.n_frames), dtype=np.float32)
        self._kernels.untempered(
            self._below[first_row:last_row],
            self._tile_tops[tile],
            log_prior,
            self._beta,
            self._reference,
            out,
        )
        return out

    def weigh(
        self, first_row: int, last_row: int, law: MergeLaw, offsets: Array | None, signal: Array,
        weight: Array | None = None, counted: Array | None = None,
    ) -> Weighed:  # fmt: skip
        """What the frames deposit into the rows of a tile that was added, in one pass; on the GPU only.

        offsets : (T,) of the law; None if its slope is 0.   signal : (T,) photons of each row.
        weight : (D,) how much each frame counts in the merge.   counted : (D,) bool, frames in ``mass``.
        """
        from orienteer.posterior._weighing_cuda import Kept, Tempering, weigh

        xp = self._xp
        log_prior = self._log_priors[self._tile_between(first_row, last_row)]

        def of_frames(values: Array | None) -> Array:
            return self._ones if values is None else xp.ascontiguousarray(values, dtype=np.float32)

        scale = half_scale(1.0 if law.largest is None else law.largest)
        numerator, rows, expected = weigh(
            Kept(self._below, self._tiles, self._offset, self._lowest, self._factor),
            Tempering(self._final_top, self._reference, self._beta, log_prior),
            first_row, signal if offsets is None else offsets, signal, of_frames(law.inverse),
            of_frames(weight), of_frames(law.row_factor), None if counted is None else of_frames(counted),
            law.slope, scale,
        )  # fmt: skip
        return Weighed(numerator, 1 / scale, rows[0], expected, None if counted is None else rows[1])

    def _tile_between(self, first_row: int, last_row: int) -> int:
        """The number of the tile that was added as these rows."""
        self.finish()
        tile = int(self._tile_of_row[first_row])
        is_start = first_row == 0 or self._tile_of_row[first_row - 1] != tile
        n_rows = self._rows_between(first_row, last_row)
        if tile < 0 or not is_start or len(self._log_priors[tile]) != n_rows:
            raise OrienteerError(f"rows {first_row} to {last_row} were not added as one tile.")
        return tile

    def _rows_between(self, first_row: int, last_row: int) -> int:
        if not 0 <= first_row <= last_row <= self.n_rows:
            raise OrienteerError(f"rows {first_row} to {last_row} do not lie within {self.n_rows} rows.")
        return last_row - first_row

    def row_mass(self) -> Array:
        """Sum over frames of the probabilities of every row, (K,) float64; rows with 0 can be skipped."""
        self.finish()
        out = self._xp.empty(self.n_rows, dtype=np.float64)
        self._kernels.row_mass(self._below, self._tiles, self._offset, self._lowest, self._factor, out)
        return out

    def kept(self) -> Responsibilities:
        """The kept probabilities as lists, which are short if the posteriors are narrow."""
        self.finish()
        xp = self._xp
        start = starts_of(xp.where(self._possible, self._n_own, 0))
        n = int(start[-1])
        row, probability = xp.empty(n, dtype=np.int32), xp.empty(n, dtype=np.float32)
        lowest = xp.where(self._possible, self._lowest, np.inf).astype(np.float32)
        self._kernels.list_kept(
            self._below, self._tiles, self._offset, lowest, self._factor, start, row, probability
        )
        return Responsibilities(self.n_rows, start, row, probability)
