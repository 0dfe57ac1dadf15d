"""CPU twin of ``listed.cu``: posteriors over lists of blocks.  One task does all work of a frame.

The sum of each pair is rounded to whole multiples of ``part``, which is the same for all pairs and ranks:
such numbers add up to the same total in any order.
"""

import numpy as np
from numba import njit, prange

from orienteer.posterior._exponential_numba import exponential
from orienteer.posterior.threshold import BINS_PER_NAT, N_BINS

_NOTHING = np.float32(-3e38)
_WIDTH = np.float32(BINS_PER_NAT)
_FRAMES = 16


@njit(nogil=True, cache=True, inline="always")
def _tempered(value, beta, log_prior):  # type: ignore[no-untyped-def]
    """x of a value; float64 has enough digits without subtracting a reference."""
    return np.float64(beta) * np.float64(value) + np.float64(log_prior)


@njit(nogil=True, parallel=True, cache=True)
def best_listed(values, value_start, frame_start, frame_pair, log_prior, first_row, beta, top, best, best_score):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """The maximum of x in each frame, and its chosen row and value, (D,); -inf and -1 if there is none."""
    D = top.size
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        for d in range(task * _FRAMES, min((task + 1) * _FRAMES, D)):
            highest, row, score = -np.inf, np.int64(-1), np.float32(-np.inf)
            for pair in frame_pair[frame_start[d] : frame_start[d + 1]]:
                start = value_start[pair]
                for i in range(value_start[pair + 1] - start):
                    x = _tempered(values[start + i], beta[d], log_prior[first_row[pair] + i])
                    if x > highest:
                        highest, row, score = x, first_row[pair] + i, values[start + i]
            top[d], best[d], best_score[d] = highest, row, score


@njit(nogil=True, parallel=True, cache=True)
def lower_listed(values, value_start, frame_start, frame_pair, log_prior, first_row, beta, top, part, distance, total, moment, counts):  # type: ignore[no-untyped-def]  # fmt: skip # noqa: E501
    """Distances x - top (n_values,), their sums of e^x and x e^x (D,) in whole parts, and counts by bin."""
    D = total.size
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        for d in range(task * _FRAMES, min((task + 1) * _FRAMES, D)):
            own = np.zeros(N_BINS + 1, np.int32)
            total[d] = moment[d] = 0.0
            for pair in frame_pair[frame_start[d] : frame_start[d + 1]]:
                sum_, weighted, start = 0.0, 0.0, value_start[pair]
                for i in range(value_start[pair + 1] - start):
                    x = _tempered(values[start + i], beta[d], log_prior[first_row[pair] + i])
                    below = np.float32(x - top[d])
                    if not below > _NOTHING:
                        distance[start + i] = np.float32(-np.inf)
                        continue
                    distance[start + i] = below
                    p = np.float64(exponential(below))
                    sum_ += p
                    weighted += p * below
                    place = -below * _WIDTH
                    own[np.int32(place) if place < N_BINS else N_BINS] += 1
                total[d] += np.rint(sum_ / part) * part
                moment[d] += np.rint(weighted / part) * part
            counts[:, d] = own


@njit(nogil=True, parallel=True, cache=True)
def keep_listed(distance, value_start, frame_start, frame_pair, lowest, part, probability, kept):  # type: ignore[no-untyped-def]
    """exp(distance) of values above the thresholds, 0 for the others, and their sums (D,) in whole parts."""
    D = kept.size
    for task in prange((D + _FRAMES - 1) // _FRAMES):
        for d in range(task * _FRAMES, min((task + 1) * _FRAMES, D)):
            kept[d] = 0.0
            for pair in frame_pair[frame_start[d] : frame_start[d + 1]]:
                sum_ = np.float64(0)
                for v in range(value_start[pair], value_start[pair + 1]):
                    p = exponential(distance[v]) if distance[v] > lowest[d] else np.float32(0)
                    probability[v] = p
                    sum_ += p
                kept[d] += np.rint(sum_ / part) * part


@njit(nogil=True, parallel=True, cache=True)
def scale_listed(probability, value_start, frame, factor):  # type: ignore[no-untyped-def]
    """Multiply the values of every pair by the factor (D,) of its frame."""
    for pair in prange(frame.size):
        for v in range(value_start[pair], value_start[pair + 1]):
            probability[v] *= factor[frame[pair]]


@njit(nogil=True, parallel=True, cache=True)
def listed_row_mass(probability, value_start, block_start, pair_start, mass):  # type: ignore[no-untyped-def]
    """Sum of p over the frames of a block, for each of its rows: mass (T,) float64."""
    for b in prange(block_start.size - 1):
        first, last = block_start[b], block_start[b + 1]
        mass[first:last] = 0.0
        for pair in range(pair_start[b], pair_start[b + 1]):
            for i in range(last - first):
                mass[first + i] += probability[value_start[pair] + i]
