"""The temperature of the second pass of a search from coarse to fine."""

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.likelihood.base import Likelihood
from orienteer.posterior.blocks import BlockList
from orienteer.posterior.tempering import (
    LOWEST_INVERSE_TEMPERATURE,
    UNTEMPERED,
    highest_inverse_temperature,
    inverse_temperatures,
)
from orienteer.reconstruction.frames.batch import Batch
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.fine_search import FineSearch
from orienteer.reconstruction.orienting.temperature import say_in_temperature

# Inverse temperatures whose logarithms differ by less count as the same.
_SAME_TEMPERATURE = 1e-3


def fine_inverse_temperature(
    search: FineSearch, likelihood: Likelihood, expander: Expander, sample: Batch, blocks: BlockList,
    target: float, limit: float = 1.0,
) -> float:  # fmt: skip
    """The inverse temperature at which frames, up to ``limit``, are spread over ``target`` fine rows.

    sample : a few frames, with their weights in the merge.
    blocks : the fine rows below the coarse rows that they keep in the first pass.
    The result is for a frame of fluence 1; ``posterior.tempering.inverse_temperatures`` gives that of each
    frame, at most ``limit``.  It is ``UNTEMPERED`` if even at the limit frames are spread too widely: the
    brightest frames are hardly ever among the few.
    """
    scored = search.score(likelihood, expander, sample, blocks)
    says = to_numpy(say_in_temperature(sample))

    def excess(log_beta: float) -> float:
        own = inverse_temperatures(float(np.exp(log_beta)), sample.fluence, limit)
        entropy = to_numpy(search.posterior(scored, own).posterior.entropy)
        return float(np.average(entropy, weights=says) - np.log(target))

    brightness = to_numpy(sample.fluence)[says > 0]
    low, high = np.log(LOWEST_INVERSE_TEMPERATURE), np.log(highest_inverse_temperature(brightness, limit))
    if excess(high) >= 0:
        return UNTEMPERED
    while high - low > _SAME_TEMPERATURE:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
    return float(np.exp(low))
