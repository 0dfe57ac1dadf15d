"""Posteriors of frames over their own lists of blocks: the fine pass of a search from coarse to fine."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import OrienteerError
from orienteer.posterior.blocks import BlockList
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.threshold import N_BINS, threshold_of_counts


@dataclass(frozen=True, eq=False)
class BlockResponsibilities:
    """Probabilities of frames over listed blocks of fine rows.

    blocks : which rows and frames.
    probability : (n_values,) float32, pair after pair; sum to 1 in each frame that any row can explain.
    posterior : evidence and the like of every frame; ``best_row`` is a row of the fine grid.
    """

    blocks: BlockList
    probability: Array
    posterior: Posterior

    def row_mass(self) -> Array:
        """Sum over frames of the probabilities of every chosen row, (T,) float64."""
        blocks, xp = self.blocks, array_namespace(self.probability)
        mass = xp.empty(blocks.n_rows, dtype=np.float64)
        _kernels(self.probability).listed_row_mass(
            self.probability, blocks.value_start, blocks.block_start, blocks.pair_start, mass
        )
        return mass


def normalise_blocks(
    values: Array, blocks: BlockList, log_prior: Array, inverse_temperature: Array, kept_mass: float = 0.999
) -> BlockResponsibilities:
    """Probabilities of each frame over the rows of its blocks, p ~ w_k exp(beta_d S_kd).

    values : (n_values,) float32 log-likelihoods S, pair after pair.
    log_prior : (n_fine,) ln w over the whole fine grid; -inf: the row is impossible.
    inverse_temperature : (D,) or a number, beta.
    kept_mass : share of each frame's probability that is kept; the rest, its least likely rows, becomes 0.
    """
    xp, D = array_namespace(values), blocks.n_frames
    if values.shape != (blocks.n_values,):
        raise OrienteerError(f"the list of blocks has {blocks.n_values} values; got {values.shape}.")
    if blocks.n_rows and log_prior.shape[0] <= int(blocks.row[-1]):
        raise OrienteerError(
            f"the blocks reach to fine row {int(blocks.row[-1])}; the log-prior has {len(log_prior)} rows."
        )
    kernels = _kernels(values)
    values = xp.asarray(values, dtype=np.float32)
    prior_of_chosen = xp.asarray(log_prior, dtype=np.float32)[blocks.row]
    beta = xp.asarray(inverse_temperature, dtype=np.float32)
    beta = xp.asarray(xp.broadcast_to(beta, (D,)), copy=True)
    first_row = blocks.block_start[blocks.pair_block]
    frame_start, frame_pair = blocks.pairs_of_frames
    distance = xp.empty(blocks.n_values, dtype=np.float32)
    log_evidence, total, entropy, kept = (xp.empty(D, dtype=np.float64) for _ in range(4))
    best, best_score = xp.empty(D, dtype=np.int64), xp.empty(D, dtype=np.float32)
    counts = xp.empty((N_BINS + 1, D), dtype=np.int32)
    kernels.temper_listed(
        values, blocks.value_start, prior_of_chosen, first_row, frame_start, frame_pair, beta,
        distance, log_evidence, total, entropy, best, best_score, counts,
    )  # fmt: skip
    lowest, n_kept = threshold_of_counts(counts, total, kept_mass)
    kernels.keep_listed(distance, blocks.value_start, frame_start, frame_pair, lowest, distance, kept)
    possible = total > 0
    best_row = (
        xp.where(possible, blocks.row[xp.maximum(best, 0)], 0) if blocks.n_rows else xp.zeros_like(best)
    )
    posterior = Posterior(
        log_evidence=log_evidence,
        best_row=best_row,
        best_score=best_score,
        entropy=entropy,
        kept_mass=xp.where(possible, xp.minimum(kept / xp.where(possible, total, 1), 1), 0),
        n_kept=xp.where(possible, n_kept, 0),
    )
    return BlockResponsibilities(blocks, distance, posterior)


def _kernels(array: Array) -> Any:
    if is_on_gpu(array):
        from orienteer.posterior import _listed_cuda

        return _listed_cuda
    from orienteer.posterior import _listed_numba

    return _listed_numba
