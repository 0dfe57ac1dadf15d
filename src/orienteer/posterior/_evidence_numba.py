"""CPU kernels of ``evidence.py``: log-sum-exp and entropy of the columns of a matrix, one pass over memory.

Work is cut into parts of rows and blocks of frames that depend on the sizes alone, and parts are joined in
their order, so the number of threads changes no bit.
"""

import numpy as np
from numba import njit, prange

from orienteer.posterior._exponential_numba import FAST, exponential

FRAMES = 256  # frames of a block: a kilobyte of each row
ROWS = 16  # rows whose maximum is taken at once: 16 x 256 floats stay in the first cache
ROWS_PER_PART = 2048
NOTHING = np.float32(-3e38)  # below all scores


@njit(nogil=True, cache=True, fastmath=FAST)
def temper(scores, reference, beta, log_prior, x, top):  # type: ignore[no-untyped-def]
    """x = beta (S - reference) + log_prior of a few rows (T, n), and the maximum so far (n,)."""
    for k in range(scores.shape[0]):
        prior = log_prior[k]
        for d in range(scores.shape[1]):
            value = beta[d] * (scores[k, d] - reference[d]) + prior
            x[k, d] = value
            top[d] = value if value > top[d] else top[d]


@njit(nogil=True, cache=True, fastmath=FAST)
def accumulate(x, top, total, moment):  # type: ignore[no-untyped-def]
    """Add e^(x - top) to the totals (n,) and (x - top) e^(x - top) to the moments (n,), x (T, n)."""
    for k in range(x.shape[0]):
        for d in range(x.shape[1]):
            below = x[k, d] - top[d]
            p = exponential(below)
            total[d] += p
            moment[d] += p * (below if p > np.float32(0) else np.float32(0))


@njit(nogil=True, cache=True)
def join(top, total, moment, top_2, total_2, moment_2):  # type: ignore[no-untyped-def]
    """Join sums of e^(x - top) and of (x - top) e^(x - top) taken below two maxima; all (n,), in place."""
    for d in range(top.size):
        if not total_2[d] > 0:
            continue
        if top_2[d] > top[d]:
            shift = np.float64(top[d]) - np.float64(top_2[d])
            if total[d] > 0:
                factor = np.exp(shift)
                moment[d] = (moment[d] + shift * total[d]) * factor
                total[d] *= factor
            top[d] = top_2[d]
            total[d] += total_2[d]
            moment[d] += moment_2[d]
        else:
            shift = np.float64(top_2[d]) - np.float64(top[d])
            factor = np.exp(shift) if shift < 0 else 1.0
            total[d] += factor * total_2[d]
            moment[d] += factor * (moment_2[d] + shift * total_2[d])


@njit(nogil=True, parallel=True, cache=True)
def evidence_of_parts(scores, reference, log_prior, beta, top, total, moment):  # type: ignore[no-untyped-def]
    """Maximum of x = beta (S - reference) + log_prior and sums below it, per part of rows: (parts, D)."""
    K, D = scores.shape
    blocks = (D + FRAMES - 1) // FRAMES
    for task in prange(top.shape[0] * blocks):
        part, first = task // blocks, (task % blocks) * FRAMES
        last = min(first + FRAMES, D)
        n = last - first
        x = np.empty((ROWS, n), np.float32)
        few_top = np.empty(n, np.float32)
        few_total, few_moment = np.empty(n, np.float32), np.empty(n, np.float32)
        top[part, first:last] = NOTHING
        total[part, first:last] = moment[part, first:last] = 0.0
        for start in range(part * ROWS_PER_PART, min((part + 1) * ROWS_PER_PART, K), ROWS):
            end = min(start + ROWS, K)
            few_top[:] = top[part, first:last]  # seldom exceeded, and then joining needs no exponential
            few_total[:] = np.float32(0)
            few_moment[:] = np.float32(0)
            few = x[: end - start]
            temper(
                scores[start:end, first:last], reference[first:last], beta[first:last], log_prior[start:end],
                few, few_top,
            )  # fmt: skip
            accumulate(few, few_top, few_total, few_moment)
            join(
                top[part, first:last], total[part, first:last], moment[part, first:last],
                few_top, few_total, few_moment,
            )  # fmt: skip


@njit(nogil=True, cache=True)
def evidence(scores, log_prior, beta, log_evidence, entropy):  # type: ignore[no-untyped-def]
    """Write ln sum_k exp(x) and the entropy of exp(x) / sum, x = beta[d] scores[k, d] + log_prior[k]."""
    K, D = scores.shape
    # Scores are large and similar; one of them is subtracted so that differences keep their digits.
    reference = np.zeros(D, np.float32)
    for d in range(D):
        if np.isfinite(scores[0, d]):
            reference[d] = scores[0, d]
    parts = (K + ROWS_PER_PART - 1) // ROWS_PER_PART
    top = np.empty((parts, D), np.float32)
    total, moment = np.empty((parts, D)), np.empty((parts, D))
    evidence_of_parts(scores, reference, log_prior, beta, top, total, moment)
    for part in range(1, parts):
        join(top[0], total[0], moment[0], top[part], total[part], moment[part])
    for d in range(D):
        log_evidence[d], entropy[d] = -np.inf, 0.0
        if total[0, d] > 0:
            log_total = np.log(total[0, d])
            log_evidence[d] = log_total + top[0, d] + np.float64(beta[d]) * np.float64(reference[d])
            entropy[d] = log_total - moment[0, d] / total[0, d]
