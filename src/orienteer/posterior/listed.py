"""Posteriors of frames over their own lists of blocks: the fine pass of a search from coarse to fine."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.exact_sums import part_of
from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.errors import OrienteerError
from orienteer.posterior.blocks import BlockList
from orienteer.posterior.joining import Best, join_best
from orienteer.posterior.posterior import Posterior
from orienteer.posterior.threshold import N_BINS, threshold_of_counts


@dataclass(frozen=True, eq=False)
class BlockResponsibilities:
    """Probabilities of frames over listed blocks of fine rows.

    blocks : which rows and frames.
    probability : (n_values,) float32, pair after pair; sum to 1 in each frame that any row can explain.
    posterior : evidence, best row and more of every frame; ``best_row`` is a row of the fine grid.
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
    values: Array, blocks: BlockList, log_prior: Array, inverse_temperature: Array, kept_mass: float = 0.999,
    comm: Comm = SERIAL,
) -> BlockResponsibilities:  # fmt: skip
    """Probabilities of each frame over the rows of its blocks, p ~ w_k exp(beta_d S_kd).

    values : (n_values,) float32 log-likelihoods S, pair after pair.
    log_prior : (n_fine,) ln w over the whole fine grid; -inf: the row is impossible.
    inverse_temperature : (D,) or a number, beta.
    kept_mass : share of each frame's probability that is kept; the rest, its least likely rows, becomes 0.
    comm : ranks that divide the rows of the same frames among them, each with its own blocks.
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
    lists = blocks.value_start, frame_start, frame_pair
    given = values, *lists, prior_of_chosen, first_row, beta
    top, best = xp.empty(D, dtype=np.float64), xp.empty(D, dtype=np.int64)
    best_score = xp.empty(D, dtype=np.float32)
    kernels.best_listed(*given, top, best, best_score)
    own_row = (
        xp.where(best >= 0, blocks.row[xp.maximum(best, 0)], 0) if blocks.n_rows else xp.zeros_like(best)
    )
    top, best_row, best_score = join_best(comm, Best(top, own_row, best_score))
    part = part_of(len(log_prior))
    distance = xp.empty(blocks.n_values, dtype=np.float32)
    sums, counts = xp.empty((2, D), dtype=np.float64), xp.empty((N_BINS + 1, D), dtype=np.int32)
    kernels.lower_listed(*given, top, part, distance, *sums, counts)
    total, moment = comm.sum(sums)
    lowest, _ = threshold_of_counts(comm.sum(counts), total, kept_mass)
    kept = xp.empty(D, dtype=np.float64)
    kernels.keep_listed(distance, *lists, lowest, part, distance, kept)
    kept, possible = comm.sum(kept), total > 0
    factor = xp.where(possible, 1 / xp.where(possible, kept, 1), 0).astype(np.float32)
    kernels.scale_listed(distance, blocks.value_start, blocks.frame, factor)
    safe = xp.where(possible, total, 1)
    log_evidence = xp.log(safe) + xp.where(possible, top, 0)
    posterior = Posterior(
        log_evidence=xp.where(possible, log_evidence, -np.inf),
        best_row=best_row,
        best_score=best_score,
        entropy=xp.where(possible, xp.log(safe) - moment / safe, 0),
        kept_mass=xp.where(possible, xp.minimum(kept / safe, 1), 0),
    )
    return BlockResponsibilities(blocks, distance, posterior)


def _kernels(array: Array) -> Any:
    if is_on_gpu(array):
        from orienteer.posterior import _listed_cuda

        return _listed_cuda
    from orienteer.posterior import _listed_numba

    return _listed_numba
