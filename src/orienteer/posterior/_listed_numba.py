"""CPU twin of ``listed.cu``: posteriors over lists of blocks.  A frame is the work of one task alone."""

import numpy as np
from numba import njit, prange

from orienteer.posterior._exponential_numba import exponential
from orienteer.posterior.threshold import BINS_PER_NAT, N_BINS

_NOTHING = np.float32(-3e38)
_WIDTH = np.float32(BINS_PER_NAT)
_FRAMES = 16


@njit(nogil=True, cache=True)
def _distances(values, value_start, log_prior, first_row, pairs, beta, distance):  # type: ignore[no-untyped-def]
    """Write how far each value of a frame lies below its best; returns reference, top, best row and score."""
    reference = np.float32(0)
    if pairs.size:
        first = values[value_start[pairs[0]]]
        reference = first if np.isfinite(first) else reference
    top, best_row, best_score = _NOTHING, np.int64(-1), np.float32(-np.inf)
    for pair in pairs:
        start = value_start[pair]
        for i in range(value_start[pair + 1] - start):
            x = beta * (values[start + i] - reference) + log_prior[first_row[pair] + i]
            distance[start + i] = x
            if x > top:
                top, best_row, best_score = x, first_row[pair] + i, values[start + i]
    for pair in pairs:
        for v in range(value_start[pair], value_start[pair + 1]):
            below = distance[v] - top
            distance[v] = below if below > _NOTHING else np.float32(-np.inf)
    return reference, top, best_row, best_score


@njit(nogil=True, parallel=True, cache=True)
def temper_listed(values, value_start, log_prior, first_row, frame_start, frame_pair, beta, distance, log_evidence, total, entropy, best_row, best_score, counts):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Distances below each frame's best, (n_values,); evidence and the like (D,); counts (N_BINS + 1, D)."""
    D = log_evidence.size
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        for d in range(task * _FRAMES, min((task + 1) * _FRAMES, D)):
            pairs = frame_pair[frame_start[d] : frame_start[d + 1]]
            reference, top, best_row[d], best_score[d] = _distances(
                values, value_start, log_prior, first_row, pairs, beta[d], distance
            )
            own = np.zeros(N_BINS + 1, np.int32)
            sum_, moment = 0.0, 0.0
            for pair in pairs:
                for v in range(value_start[pair], value_start[pair + 1]):
                    below = distance[v]
                    if below > _NOTHING:
                        p = np.float64(exponential(below))
                        sum_ += p
                        moment += p * below
                        place = -below * _WIDTH
                        own[np.int32(place) if place < N_BINS else N_BINS] += 1
            counts[:, d] = own
            total[d] = sum_
            log_evidence[d], entropy[d] = -np.inf, 0.0
            if sum_ > 0:
                log_evidence[d] = np.log(sum_) + top + np.float64(beta[d]) * np.float64(reference)
                entropy[d] = np.log(sum_) - moment / sum_


@njit(nogil=True, parallel=True, cache=True)
def keep_listed(distance, value_start, frame_start, frame_pair, lowest, probability, kept):  # type: ignore[no-untyped-def]
    """Probabilities above the thresholds, which sum to 1 in each frame, and the sum kept before that (D,)."""
    D = kept.size
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        for d in range(task * _FRAMES, min((task + 1) * _FRAMES, D)):
            pairs = frame_pair[frame_start[d] : frame_start[d + 1]]
            sum_ = np.float64(0)
            for pair in pairs:
                for v in range(value_start[pair], value_start[pair + 1]):
                    p = exponential(distance[v]) if distance[v] > lowest[d] else np.float32(0)
                    probability[v] = p
                    sum_ += p
            kept[d] = sum_
            factor = np.float32(1 / sum_) if sum_ > 0 else np.float32(0)
            for pair in pairs:
                for v in range(value_start[pair], value_start[pair + 1]):
                    probability[v] *= factor


@njit(nogil=True, parallel=True, cache=True)
def listed_row_mass(probability, value_start, block_start, pair_start, mass):  # type: ignore[no-untyped-def]
    """Sum of p over the frames of a block, for each of its rows: mass (T,) float64."""
    for b in prange(block_start.size - 1):
        first, last = block_start[b], block_start[b + 1]
        mass[first:last] = 0.0
        for pair in range(pair_start[b], pair_start[b + 1]):
            for i in range(last - first):
                mass[first + i] += probability[value_start[pair] + i]
