"""How much to regularise, chosen by how well each half of the frames predicts the other.

Each half of the frames is merged for every regularisation, and judged by the misfit of the other half.  Noise
that one half has fitted does not predict the other, so the sum of both misfits is smallest for the best
model.  Only sums over frames are needed.  It costs two merges more than the corner of the L-curve, but does
not require the curve to have a corner.  It judges the prediction of pixels, most of them at low resolution.

The weight lambda that is right for a half is right for the whole, too: it is the variance of the noise over
that of the signal.  Relative to the total weight of all frames, it is half of what it is for one half.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.mtip.merging import Merge, merge, misfits
from orienteer.mtip.normal_equations import NormalEquations


@dataclass(frozen=True, eq=False)
class HeldOutChoice:
    """The regularisation that predicts best.

    regularisations : (L,) relative to the total weight.
    predicted : (L,) misfit of both halves, each with the merge of the other, over the sum of w b^2; inf if a
        search has not converged.
    chosen : index of the smallest.
    halves : the merges of both halves.
    """

    regularisations: NDArray[np.float64]
    predicted: NDArray[np.float64]
    chosen: int
    halves: tuple[Merge, Merge]


def choose_by_halves(
    first: NormalEquations, second: NormalEquations, regularisations: ArrayLike, **options: Any
) -> HeldOutChoice:
    """Merge two halves of the frames and choose by how well each predicts the other.

    first, second : sums over frames that have nothing in common.
    options : as of ``merge``.
    """
    halves = merge(first, regularisations, **options), merge(second, regularisations, **options)
    relative = halves[0].regularisations
    total = first.data_square + second.data_square
    predicted = np.full(len(relative), np.inf)
    usable = np.flatnonzero(np.all([half.solver.converged for half in halves], axis=0))
    if len(usable):
        found = [[half.autocorrelations[int(index)] for index in usable] for half in halves]
        predicted[usable] = (misfits(second, found[0]) + misfits(first, found[1])) / total
    if not np.isfinite(predicted).any():
        raise OrienteerError(
            "none of the regularised solutions has converged in both halves.",
            "Allow more iterations, a larger tolerance or larger regularisations.",
        )
    chosen = int(np.argmin(predicted))
    return HeldOutChoice(relative, predicted, chosen, halves)
