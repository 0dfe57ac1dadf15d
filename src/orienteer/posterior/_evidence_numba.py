"""CPU kernel of ``evidence.py``: log-sum-exp and entropy of the columns of a matrix, one pass over memory."""

import numpy as np
from numba import njit, prange

from orienteer.posterior._exponential_numba import FAST, exponential

_FRAMES = 64  # frames of a task; a task alone decides about its frames, so threads change no bit
_ROWS = 32  # rows whose maximum is taken at once: 64 x 32 floats stay in the first cache
_NOTHING = np.float32(-3e38)


@njit(nogil=True, parallel=True, cache=True, fastmath=FAST)
def evidence(scores, log_prior, beta, log_evidence, entropy):  # type: ignore[no-untyped-def]
    """Write ln sum_k exp(x) and the entropy of exp(x) / sum, x = beta[d] scores[k, d] + log_prior[k]."""
    K, D = scores.shape
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        first = task * _FRAMES
        n = min(_FRAMES, D - first)
        # Scores are large and alike: differences from one of them keep the digits that matter.
        reference = np.zeros(n, np.float32)
        for d in range(n):
            if np.isfinite(scores[0, first + d]):
                reference[d] = scores[0, first + d]
        top = np.full(n, _NOTHING, np.float32)
        total, moment = np.zeros(n), np.zeros(n)  # sum of e^(x - top), and of (x - top) e^(x - top)
        x = np.empty((_ROWS, n), np.float32)
        part, part_moment = np.empty(n, np.float32), np.empty(n, np.float32)
        before = np.empty(n, np.float32)
        for start in range(0, K, _ROWS):
            rows = min(_ROWS, K - start)
            for d in range(n):
                before[d] = top[d]
                part[d] = part_moment[d] = np.float32(0)
            for k in range(rows):
                prior = log_prior[start + k]
                for d in range(n):
                    value = beta[first + d] * (scores[start + k, first + d] - reference[d]) + prior
                    x[k, d] = value
                    top[d] = value if value > top[d] else top[d]
            for k in range(rows):
                for d in range(n):
                    below = x[k, d] - top[d]
                    p = exponential(below)
                    part[d] += p
                    part_moment[d] += p * (below if p > np.float32(0) else np.float32(0))
            for d in range(n):
                if total[d] > 0:
                    shift = np.float64(before[d]) - np.float64(top[d])
                    moment[d] = (moment[d] + shift * total[d]) * np.exp(shift)
                    total[d] *= np.exp(shift)
                total[d] += part[d]
                moment[d] += part_moment[d]
        for d in range(n):
            if total[d] > 0:
                log_total = np.log(total[d])
                offset = np.float64(beta[first + d]) * np.float64(reference[d])
                log_evidence[first + d] = log_total + top[d] + offset
                entropy[first + d] = log_total - moment[d] / total[d]
            else:
                log_evidence[first + d] = -np.inf
                entropy[first + d] = 0.0
