"""Frames with a known pose are merged there; which state they show is still found with the models."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.ranks.comm import SERIAL, Comm, own_blocks
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.posterior import Posterior
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.refinement import local_scores, merge_at, signal_at
from orienteer.reconstruction.orienting.search import Grid, Search
from orienteer.reconstruction.states.posterior import StatePosterior


@dataclass(frozen=True, eq=False)
class KnownPoses:
    """A search for the frames whose pose is not known; the others keep their known pose.

    search : for frames without a known pose; None: there are none.
    grid : the rows that the posteriors refer to.
    quaternion : (N, 4) known poses of all frames of the data, NaN for those without one.
    comm : ranks that work on the same frames; each merges a part of them.
    """

    search: Search | None
    grid: Grid
    quaternion: NDArray[np.float64]
    tile_rows: int
    comm: Comm = SERIAL

    def inverse_temperatures(self, batch: Batch) -> Array:
        """As :class:`Search` says; known poses need none."""
        xp = array_namespace(batch.fluence)
        ones = xp.ones(len(batch))
        if self.search is None:
            return ones
        is_known = xp.asarray(np.isfinite(self.quaternion[batch.places][:, 0]))
        return xp.where(is_known, ones, self.search.inverse_temperatures(batch))

    def step(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, deposit: Deposit,
        pixel_weights: Array, states: StatePosterior | None = None,
    ) -> tuple[Posterior, Array]:  # fmt: skip
        """As :class:`Search` says; the row of a frame with a known pose gives its state, and no pose."""
        xp = array_namespace(batch.fluence)
        quaternion = self.quaternion[batch.places]
        known = np.flatnonzero(np.isfinite(quaternion[:, 0]))
        if self.search is None:
            D = len(batch)
            posterior = Posterior(
                log_evidence=xp.zeros(D), best_row=xp.zeros(D, dtype=np.int64),
                best_score=xp.zeros(D, dtype=np.float32), entropy=xp.zeros(D), kept_mass=xp.ones(D),
            )  # fmt: skip
            expected = xp.zeros(D)
        else:
            searched = xp.ones(len(batch), dtype=bool)
            searched[xp.asarray(known)] = False
            weight = searched.astype(np.float32)
            others = replace(
                batch, weight=weight if batch.weight is None else weight * batch.weight, counted=searched
            )
            posterior, expected = self.search.step(
                likelihood, expander, others, deposit, pixel_weights, states
            )  # fmt: skip
        if not len(known):
            return posterior, expected
        return self._known(
            likelihood, expander, batch, deposit, pixel_weights, states, posterior, expected,
            xp.asarray(known), xp.asarray(quaternion[known]),
        )  # fmt: skip

    def _known(
        self, likelihood: Likelihood, expander: Expander, batch: Batch, deposit: Deposit,
        pixel_weights: Array, states: StatePosterior | None, posterior: Posterior, expected: Array,
        frames: Array, poses: Array,
    ) -> tuple[Posterior, Array]:  # fmt: skip
        """Merge frames (F,) of a batch at their poses (F, 4), each in the states that it may show."""
        xp = array_namespace(batch.fluence)
        rows, K, M = self.grid.rows, len(self.grid.poses), len(expander.models)
        log_prior = xp.stack([_log_sum(rows.log_prior[m * K : (m + 1) * K]) for m in range(M)])
        scores = xp.stack(
            [
                local_scores(
                    likelihood, expander, batch, frames, xp.full(len(frames), m), poses[:, None],
                    self.tile_rows,
                )[:, 0]
                for m in range(M)
            ]
        )  # fmt: skip
        odds = scores + log_prior[:, None]
        evidence = _log_sum(odds)
        probability = xp.exp(odds - evidence)
        best = probability.argmax(axis=0)
        expected[frames] = 0
        # If the grid is a fine one, masses are those of coarse rows.  Only the sum over each state matters.
        n_coarse = (len(deposit.row_mass) - rows.n_junk) // M
        blocks = own_blocks(self.comm, len(frames), is_on_gpu(probability))
        for m in range(M):
            for block in blocks:
                merge_at(
                    likelihood, expander, batch, frames[block], m, poses[block], probability[m, block],
                    deposit, pixel_weights, tile_rows=self.tile_rows,
                )  # fmt: skip
                deposit.add_mass(slice(m * n_coarse, m * n_coarse + 1), probability[m, block].sum()[None])
            signal = signal_at(likelihood, expander, m, poses, batch.by_pixel, self.tile_rows)
            expected[frames] += probability[m] * signal
            if states is not None:
                states.probability[m, frames] = probability[m]
                states.best_row[m, frames] = m * K
        entropy = -(probability * xp.log(xp.maximum(probability, 1e-300))).sum(axis=0)
        posterior.log_evidence[frames] = evidence
        posterior.best_row[frames] = best * K
        posterior.best_score[frames] = xp.take_along_axis(scores, best[None], axis=0)[0]
        posterior.entropy[frames] = entropy
        return posterior, expected


def _log_sum(values: Array) -> Array:
    """ln of the sum of exp(values) over the first axis."""
    xp = array_namespace(values)
    top = values.max(axis=0)
    return top + xp.log(xp.exp(values - top).sum(axis=0, dtype=np.float64))
