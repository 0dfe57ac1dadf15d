"""How far to trust the scores: the inverse temperature beta in p_kd ~ w_k exp(beta S_kd).

Scores of a model that is still wrong are far too sure of themselves.  Two ways to tame them: ask for a number
of orientations over which a frame is to be spread (perplexity), or let two disjoint sets of pixels say how
well they agree about the orientation of the same frame (calibration).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.errors import OrienteerError
from orienteer.posterior.evidence import tempered_evidence

LOWEST_INVERSE_TEMPERATURE = 1e-8
_GOLDEN = (math.sqrt(5) - 1) / 2
_PLATEAU = 1e-3


def perplexity_at(
    scores: Array, log_prior: Array, inverse_temperature: float | Array, weights: Array | None = None
) -> float:
    """Effective number of orientations a frame is spread over: exp of the mean entropy of all frames.

    The mean is taken of entropies, not of perplexities: one blank frame in a hundred stays spread over all
    orientations at any temperature and would fill a mean of perplexities alone.

    inverse_temperature : a number, or (D,).   weights : (D,) of the frames in the mean; None: all the same.
    """
    _, entropy = tempered_evidence(scores, log_prior, inverse_temperature)
    if weights is not None:
        entropy = entropy * (weights / weights.mean())
    return float(math.exp(float(entropy.mean())))


def inverse_temperatures(inverse_temperature: float, brightness: Array, limit: float = 1.0) -> Array:
    """(D,) for frames of unequal brightness: twice the photons are twice the nats, for the same spread.

    >>> inverse_temperatures(0.5, np.array([0.1, 1.0, 5.0])).tolist()
    [1.0, 0.5, 0.1]
    """
    xp = array_namespace(brightness)
    return xp.minimum(inverse_temperature / xp.maximum(brightness, 1e-12), limit)


def inverse_temperature_for_perplexity(
    scores: Array,
    log_prior: Array,
    target: float,
    *,
    brightness: Array | None = None,
    limit: float = 1.0,
    n_frames: int = 256,
    tolerance: float = 0.01,
) -> float:
    """The inverse temperature up to ``limit`` at which frames are spread over ``target`` orientations.

    scores : (K, D) float32; of more than ``n_frames`` frames, as many at even distances are used.
    log_prior : (K,).
    target : the wanted :func:`perplexity_at`; beta = ``limit`` when even there more are left.
    brightness : (D,) of the frames, above 0.  Then the result is that of a frame of brightness 1, others have
        theirs from :func:`inverse_temperatures`, and bright frames count as much more as they are brighter:
        the dim ones are spread over many orientations whatever is done.
    tolerance : relative error of the perplexity at the result.
    """
    if not (target >= 1 and limit > 0):
        raise OrienteerError(
            f"a perplexity of {target:g} with inverse temperature up to {limit:g} cannot be had.",
            "The perplexity is at least 1 and the limit above 0.",
        )
    sample = _some_frames(scores, n_frames)
    bright = None if brightness is None else _some_frames(brightness[None], n_frames)[0]
    # Where the dimmest frame, too, is at the limit.
    highest = limit if bright is None else max(limit, limit / max(float(bright.min()), 1e-12))

    def excess(log_beta: float) -> float:
        beta: float | Array = math.exp(log_beta)
        if bright is not None:
            beta = inverse_temperatures(math.exp(log_beta), bright, limit)
        return math.log(perplexity_at(sample, log_prior, beta, bright) / target)

    if excess(math.log(highest)) >= 0:
        return highest
    return math.exp(_crossing(excess, math.log(highest), tolerance))


def _crossing(excess: Callable[[float], float], high: float, tolerance: float) -> float:
    """Where ``excess`` falls through zero below ``high``, where it is negative; falling as a whole."""
    # Scores of one model differ by thousands of nats between signals, so look for the other side in strides.
    low, stride = high - math.log(4), math.log(4)
    above, below = excess(low), excess(high)
    while above < 0 and low > math.log(LOWEST_INVERSE_TEMPERATURE):
        high, below = low, above
        stride *= 1.5
        low -= stride
        above = excess(low)
    if above < 0:  # the prior itself is narrower than asked for
        return low
    halve = False
    while high - low > 1e-6:
        # The chord lands close, halving guarantees progress: take turns.
        share = 0.5 if halve else min(max(above / (above - below), 0.02), 0.98)
        middle = low + share * (high - low)
        value = excess(middle)
        if abs(value) < tolerance:
            return middle
        if value > 0:
            low, above = middle, value
        else:
            high, below = middle, value
        halve = not halve
    return low


@dataclass(frozen=True)
class Calibration:
    """What two disjoint sets of pixels say about the scores.

    inverse_temperature : beta at which the two posteriors agree best.
    shared_nats : mean logarithm of their overlap there, in nats: 0 when they know nothing in common.
    standard_error : of ``shared_nats``, from the spread of the frames.  Below two or three of them nothing is
        shared for certain, and the inverse temperature is as uncertain.
    frame_nats : (D,) float64, the same for every frame; strongly negative where the two sets contradict.
    """

    inverse_temperature: float
    shared_nats: float
    standard_error: float
    frame_nats: NDArray[np.float64]


def overlap_nats(scores_a: Array, scores_b: Array, log_prior: Array, inverse_temperature: float) -> Array:
    """ln sum_k p_a p_b / w for every frame, (D,) float64: how much two posteriors agree, in nats.

    With ln Z(S) = ln sum_k w_k exp(beta S_k) this is ln Z(S_a + S_b) - ln Z(S_a) - ln Z(S_b) for weights w
    that sum to 1.  A frame that one of the sets cannot explain shares nothing: 0.
    """
    return _overlap(scores_a, scores_b, scores_a + scores_b, _normalised(log_prior), inverse_temperature)


def calibrate(
    scores_a: Array,
    scores_b: Array,
    log_prior: Array,
    *,
    lowest: float = 1e-6,
    limit: float = 1.0,
    n_frames: int = 256,
    outlier_share: float = 0.02,
) -> Calibration:
    """The inverse temperature at which posteriors from two disjoint sets of pixels agree best.

    Maximises the mean over frames of :func:`overlap_nats`.  For scores that are Gaussian in the orientation
    the answer is their nominal over their actual variance: 1 when the model is right, less the more its
    errors move the two sets apart.

    scores_a, scores_b : (K, D) float32, log-likelihoods of the same frames by disjoint pixels.  Of more than
        ``n_frames`` frames, as many at even distances are used.
    log_prior : (K,).
    lowest, limit : range of the answer.
    outlier_share : a frame counts as ln((1 - share) overlap + share), as if this share of frames were junk
        whose halves share nothing: no frame can cost more than -ln(share) nats.
    """
    if scores_a.shape != scores_b.shape:
        raise OrienteerError(
            f"the two sets of scores must belong to the same frames and rows; "
            f"their shapes are {scores_a.shape} and {scores_b.shape}."
        )
    if not (0 < lowest < limit and 0 < outlier_share < 1):
        raise OrienteerError(
            f"calibration between inverse temperatures {lowest:g} and {limit:g} with a share of outliers of "
            f"{outlier_share:g} is not possible.",
            "Give 0 < lowest < limit, and a share between 0 and 1.",
        )
    a, b = _some_frames(scores_a, n_frames), _some_frames(scores_b, n_frames)
    both, log_weights = a + b, _normalised(log_prior)

    def agreement(log_beta: float) -> float:
        nats = _overlap(a, b, both, log_weights, math.exp(log_beta))
        return float(np.logaddexp(nats + math.log1p(-outlier_share), math.log(outlier_share)).mean())

    beta = math.exp(_highest(agreement, math.log(lowest), math.log(limit)))
    frame_nats = _overlap(a, b, both, log_weights, beta)
    bounded = np.maximum(frame_nats, math.log(outlier_share))
    standard_error = float(bounded.std() / math.sqrt(len(bounded)))
    return Calibration(beta, float(bounded.mean()), standard_error, frame_nats)


def _overlap(a: Array, b: Array, both: Array, log_weights: Array, beta: float) -> NDArray[np.float64]:
    evidence = [to_numpy(tempered_evidence(scores, log_weights, beta)[0]) for scores in (both, a, b)]
    possible = np.isfinite(evidence[0]) & np.isfinite(evidence[1]) & np.isfinite(evidence[2])
    joint, alone_a, alone_b = (np.where(possible, part, 0.0) for part in evidence)
    return np.asarray(joint - alone_a - alone_b)


def _normalised(log_prior: Array) -> Array:
    """ln w with weights that sum to 1."""
    xp = array_namespace(log_prior)
    log_prior = xp.asarray(log_prior, dtype=xp.float64)
    top = log_prior.max()
    return log_prior - top - xp.log(xp.exp(log_prior - top).sum())


def _highest(function: Callable[[float], float], low: float, high: float, tolerance: float = 0.01) -> float:
    """Place of the maximum: a scan, since there may be several, then golden sections about the best."""
    places = np.linspace(low, high, max(3, math.ceil((high - low) / math.log(3)) + 1))
    values = np.array([function(place) for place in places])
    # Posteriors narrower than the grid no longer change: on such a plateau the lowest place is the answer.
    # (Relative, or scores that share next to nothing would count as flat down to the lowest place.)
    highest = values.max()
    best = int(np.flatnonzero(values >= highest - _PLATEAU * abs(highest))[0])
    low, high = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > tolerance:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return float((low + high) / 2)


def _some_frames(scores: Array, n_wanted: int) -> Array:
    """Up to ``n_wanted`` columns at even distances; taken, not indexed, so that rows stay contiguous."""
    xp = array_namespace(scores)
    n_frames = scores.shape[1]
    return (
        scores
        if n_frames <= n_wanted
        else xp.take(scores, xp.asarray(even_sample(n_frames, n_wanted)), axis=1)
    )


def even_sample(n_frames: int, n_wanted: int) -> NDArray[np.int64]:
    """Up to ``n_wanted`` of the frames at even distances.

    >>> even_sample(10, 4)
    array([1, 3, 6, 8])
    """
    n = min(n_frames, n_wanted)
    return ((np.arange(n) + 0.5) * (n_frames / max(n, 1))).astype(np.int64)
