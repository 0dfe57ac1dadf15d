"""Posterior: what the scores of all orientations together say about each frame."""

from dataclasses import dataclass

import numpy as np

from orienteer.compute.arrays import Array, array_namespace


@dataclass(frozen=True)
class Posterior:
    """Summary of the posterior p_kd ~ w_k exp(beta_d S_kd) of each of D frames.

    log_evidence : (D,) float64, ln sum_k w_k exp(beta_d S_kd); -inf for a frame that no row can explain.
    best_row : (D,) int64, the likeliest row.
    best_score : (D,) float32, its score S.
    entropy : (D,) float64, in nats, of the whole posterior.
    kept_mass : (D,) float64, share of the posterior in the entries that are kept.
    """

    log_evidence: Array
    best_row: Array
    best_score: Array
    entropy: Array
    kept_mass: Array

    @property
    def perplexity(self) -> Array:
        """Effective number of rows a frame is spread over, (D,) float64."""
        return array_namespace(self.entropy).exp(self.entropy)

    def untempered_evidence(self, beta: Array, log_prior: Array, n_junk: int = 0) -> Array:
        """(D,) float64, ln sum_k w_k exp(S_kd) of the frames, in nats, or a lower bound of it.

        The variational lower bound, sum_k p_kd (S_kd + ln w_k - ln p_kd), with the tempered posterior for p.
        It equals the evidence at beta = 1; elsewhere it is a lower bound if the prior is constant around the
        best row, which is assumed.  Unlike the best score, it does not grow with the noise of a model, which
        one of many poses always happens to fit.

        beta : (D,) inverse temperatures.
        log_prior : (K,) ln w.
        n_junk : number of junk rows, the last ones; the prior of a junk row says nothing about the rows
            around it.  If one of them is the best (and beta < 1), the result is its score.
        """
        xp = array_namespace(self.log_evidence)
        divergence = -self.entropy - log_prior[self.best_row].astype(self.entropy.dtype)
        possible = xp.isfinite(self.log_evidence)
        known = xp.where(possible, self.log_evidence, 0)
        bound = known + (1 / beta - 1) * (known + divergence)
        is_junk = (self.best_row >= len(log_prior) - n_junk) & (beta < 1)
        bound = xp.where(is_junk, self.best_score.astype(bound.dtype), bound)
        return xp.where(possible, bound, -np.inf)
