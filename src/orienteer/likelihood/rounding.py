"""Whether operands of one float16 term are good enough, found by trying them on a few rows and frames."""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.dense_product import DenseProduct
from orienteer.likelihood.frames import FrameBatch

# Error of a tempered score, in nats, up to which one term is good enough: half of what is allowed.
LARGEST_ERROR = 0.05
# Rows and frames that are tried, half of the frames the brightest; and how many standard deviations count.
N_ROWS, _N_FRAMES = 64, 64
_DEVIATIONS = 5.0


def error_of_half(
    likelihood: Likelihood, slices: Array, frames: FrameBatch, fluence: float | Array, beta: float | Array
) -> float:
    """How wrong one float16 term makes tempered scores, in nats: the largest error, or five deviations.

    The rounding of an operand differs from row to row.  It grows with the root of a frame's squared counts in
    counting likelihoods; in the Gaussian one it does not depend on how bright a frame is.

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
    """Places of the frames with the largest sums of squares, and of others that are spread evenly."""
    xp = array_namespace(frames.squares)
    n = min(len(frames), _N_FRAMES // 2)
    return xp.concatenate(
        [xp.argsort(frames.squares)[-n:], xp.linspace(0, len(frames) - 1, n).astype(np.int64)]
    )
