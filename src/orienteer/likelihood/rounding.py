"""Measures on a few rows and frames whether operands of one float16 term are accurate enough."""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.dense_product import DenseProduct
from orienteer.likelihood.frames import FrameBatch

# Largest error of a tempered score, in nats, with which one term is used: half of the error that is allowed.
LARGEST_ERROR = 0.05
# Rows and frames in the sample (half of the frames are the brightest), and standard deviations that count as
# the error.
N_ROWS, _N_FRAMES = 64, 64
_DEVIATIONS = 5.0


def error_of_half(
    likelihood: Likelihood, slices: Array, frames: FrameBatch, fluence: float | Array, beta: float | Array
) -> float:
    """Error of tempered scores with one float16 term, in nats: the largest, or five deviations if more.

    The rounding error differs from row to row.  In likelihoods of counts it grows with the square root of a
    frame's sum of squared counts; in the Gaussian one it does not depend on how bright a frame is.

    slices : (T, P) float32 on the GPU, a few rows.
    fluence : one number, or (D,) each frame's own; beta : the same, inverse temperatures.
    """
    if len(frames) == 0:
        return 0.0
    xp = array_namespace(slices)
    few = _sample(frames)
    fluence, beta = (x if np.ndim(x) == 0 else xp.asarray(x)[few] for x in (fluence, beta))
    chosen = frames[few]
    product = DenseProduct(chosen, "split")
    at = float(fluence) if likelihood.needs_fluence_groups else 1.0
    operand, offsets = likelihood.expand(slices, at, False, "split")
    exact, rounded = (
        likelihood.scores(product.scores(x), offsets, chosen, fluence=fluence) for x in (operand, operand[0])
    )
    error = xp.abs(rounded - exact)
    likely = _DEVIATIONS * xp.sqrt(xp.mean(error**2, axis=0))
    return float(xp.max(beta * xp.maximum(likely, xp.max(error, axis=0))))


def _sample(frames: FrameBatch) -> Array:
    """Indices of the frames with the largest sums of squares, and of as many spread evenly over the batch."""
    xp = array_namespace(frames.squares)
    n = min(len(frames), _N_FRAMES // 2)
    return xp.concatenate(
        [xp.argsort(frames.squares)[-n:], xp.linspace(0, len(frames) - 1, n).astype(np.int64)]
    )
