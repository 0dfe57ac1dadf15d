"""How far to trust the scores: the inverse temperature beta in p_kd ~ w_k exp(beta S_kd).

Scores of a model that is still wrong give posteriors that are far too narrow.  The inverse temperature is
therefore chosen such that frames are spread over a given number of orientations, their perplexity.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError
from orienteer.posterior.evidence import tempered_evidence

LOWEST_INVERSE_TEMPERATURE = 1e-8
# That of a frame of brightness 1 at which a frame of any brightness is at the limit.
UNTEMPERED = math.inf


def perplexity_at(
    scores: Array, log_prior: Array, inverse_temperature: float | Array, weights: Array | None = None
) -> float:
    """Effective number of orientations a frame is spread over: exp of the mean entropy of all frames.

    The mean is taken of entropies, not of perplexities: one blank frame in a hundred stays spread over all
    orientations at any temperature and would dominate a mean of perplexities.

    inverse_temperature : a number, or (D,).   weights : (D,) of the frames in the mean; None: all the same.
    """
    _, entropy = tempered_evidence(scores, log_prior, inverse_temperature)
    if weights is not None:
        entropy = entropy * (weights / weights.mean())
    return float(math.exp(float(entropy.mean())))


def inverse_temperatures(inverse_temperature: float, brightness: Array, limit: float = 1.0) -> Array:
    """Inverse temperatures (D,) of frames of unequal brightness, at most ``limit``.

    Twice the photons give twice the nats, so they need half the inverse temperature for the same spread.

    >>> inverse_temperatures(0.5, np.array([0.1, 1.0, 5.0])).tolist()
    [1.0, 0.5, 0.1]
    """
    xp = array_namespace(brightness)
    return xp.minimum(inverse_temperature / xp.maximum(brightness, 1e-12), limit)


def highest_inverse_temperature(brightness: Array, limit: float = 1.0) -> float:
    """The inverse temperature of a frame of brightness 1 at which all of these frames are at the limit."""
    return limit * max(1.0, float(brightness.max()))


def inverse_temperature_for_perplexity(
    scores: Array,
    log_prior: Array,
    target: float,
    *,
    brightness: Array | None = None,
    weights: Array | None = None,
    limit: float = 1.0,
    n_frames: int = 256,
    tolerance: float = 1e-6,
) -> float:
    """The inverse temperature at which frames, up to ``limit``, are spread over ``target`` orientations.

    scores : (K, D) float32; if D is above ``n_frames``, this many frames at even distances are used.
    log_prior : (K,).
    target : the wanted :func:`perplexity_at`; if it is larger even at ``limit``, the result is the limit.
    brightness : (D,) of the frames, above 0.  The result is then that of a frame of brightness 1, and
        :func:`inverse_temperatures` gives those of all frames, at most ``limit``.  If even at the limit they
        are spread too widely, it is ``UNTEMPERED``: brighter frames than these must come to the limit, too.
    weights : (D,) how much the spread of each frame counts, not all 0; None: as the frame is bright, because
        dim ones are spread over many orientations at any temperature.
    tolerance : relative error of the perplexity at the result.
    """
    if not (target >= 1 and limit > 0):
        raise OrienteerError(
            f"a perplexity of {target:g} with inverse temperature up to {limit:g} cannot be had.",
            "The perplexity is at least 1 and the limit above 0.",
        )
    sample = _some_frames(scores, n_frames)
    bright = None if brightness is None else _some_frames(brightness[None], n_frames)[0]
    counts = bright if weights is None else _some_frames(weights[None], n_frames)[0]
    highest = limit
    if bright is not None:
        highest = highest_inverse_temperature(bright if counts is None else bright[counts > 0], limit)

    def excess(log_beta: float) -> float:
        beta: float | Array = math.exp(log_beta)
        if bright is not None:
            beta = inverse_temperatures(math.exp(log_beta), bright, limit)
        return math.log(perplexity_at(sample, log_prior, beta, counts) / target)

    at_highest = excess(math.log(highest))
    if at_highest >= 0:
        return limit if brightness is None else UNTEMPERED
    return math.exp(_crossing(excess, math.log(highest), at_highest, tolerance))


def _crossing(excess: Callable[[float], float], high: float, below: float, tolerance: float) -> float:
    """The x < ``high`` where ``excess`` is 0; it falls overall, and is ``below`` (< 0) at ``high``."""
    # The size of scores varies a thousandfold with the signal, so find a positive value in growing strides.
    low, stride = high - math.log(4), math.log(4)
    above = excess(low)
    while above < 0 and low > math.log(LOWEST_INVERSE_TEMPERATURE):
        high, below = low, above
        stride *= 1.5
        low -= stride
        above = excess(low)
    if above < 0:  # the prior itself is narrower than asked for
        return low
    halve = False
    while high - low > 1e-6:
        # The secant comes close quickly, bisection always makes progress: alternate.
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


def _some_frames(scores: Array, n_wanted: int) -> Array:
    """Up to ``n_wanted`` columns at even distances; ``take``, unlike an index, keeps rows contiguous."""
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
