"""The rules that choose one of falling volumes of the support, from what starts fit and predict there."""

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.held_out import Predicted

# A volume counts as worse than the best if it is below by more standard errors than this.
_ERRORS = 2.0
# A volume also counts as worse if it is below the best by this many nats, whatever the errors.  MUCH_WORSE
# (amplitudes twice as wrong) applies while starts still search for the density; WORSE (errors of twice the
# variance) applies once they have found it and only the volume differs.
MUCH_WORSE, WORSE = float(np.log(2.0)), float(np.log(2.0)) / 2
# Upper limit of unknowns over amplitudes when fitted noise is estimated; at 1, all noise would be fitted.
_ALL_IS_FITTED = 0.95
# A volume fits noise if a smaller one fits better by more than this many nats, noise not counted.
_FITS_NOISE = 0.5


def are_too_small(fitted: Predicted, unknowns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which (K,) of falling volumes fit the voxels used worse than a larger one by more than noise explains.

    fitted : how well the voxels used in phasing are fitted.
    unknowns : (K,), voxels of each volume over independent amplitudes.
    """
    left = _noise_left(unknowns)
    result = np.zeros(len(unknowns), bool)
    for larger in range(len(unknowns)):
        below, error = fitted.below(larger)
        worse = below > np.maximum(left - left[larger], 0) + _ERRORS * error
        result[larger + 1 :] |= worse[larger + 1 :]
    return result


def are_passed_over(fitted: Predicted, unknowns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which (K,) of falling volumes say nothing, because a smaller one fits better than it could.

    fitted : how well the voxels used in phasing are fitted.
    unknowns : (K,), voxels of each volume over independent amplitudes.

    With more room any density fits better.  So where a smaller volume fits better, the starts had not found
    the density, or had lost it again.  And where it fits hardly worse with far fewer unknowns, the larger
    volume fits noise, which neighbours share with the voxels that choose.
    """
    left = _noise_left(unknowns)
    result = np.zeros(len(unknowns), bool)
    for smaller in range(len(unknowns)):
        below, error = fitted.below(smaller)
        is_lost = below > _ERRORS * error
        fits_noise = below + left[smaller] - left > _FITS_NOISE + _ERRORS * error
        result[:smaller] |= (is_lost | fits_noise)[:smaller]
    return result


def _noise_left(unknowns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm (K,) of the share of the noise that a density does not fit.

    With p unknowns and N amplitudes, a share p / N of its variance is fitted, and 1 - p / N is left.
    """
    return np.log1p(-np.minimum(unknowns, _ALL_IS_FITTED)) / 2


def smallest_as_good(
    found: Predicted,
    scatter: float = 0.0,
    most: float = MUCH_WORSE,
    refused: NDArray[np.bool_] | None = None,
    passed_over: NDArray[np.bool_] | None = None,
) -> tuple[int, NDArray[np.float64]]:
    """The last of falling volumes, from the best on, before one predicts held-out voxels worse.

    The search stops at the first worse volume: if the voxels say little, a far smaller volume may do as well
    by chance, and would ruin the density, while one that is a little too large does little harm.

    scatter : difference between the scores of good starts at one volume.
    most : nats below the best that are allowed at most, however large the errors.
    refused : (K,), volumes that are known to be too small, never the first of all; None: no such volumes.
    passed_over : (K,), volumes that say nothing, never all; None: no such volumes.

    Returns the number of the volume, and the standard error (K,) of the difference between each volume and
    the best; it comes from the scatter of speckles, which are few, and from that of starts.
    """
    no_volumes = np.zeros(len(found.mean), bool)
    is_out, is_passed = (no_volumes if some is None else some for some in (refused, passed_over))
    best = int(np.argmax(np.where(is_out | is_passed, -np.inf, found.mean)))
    below, by_speckles = found.below(best)
    error = np.hypot(by_speckles, scatter)
    # Symmetric particles have few independent speckles, so errors alone would allow any volume.
    allowed = np.minimum(_ERRORS * error, most)
    is_worse = ((below > allowed) | is_out) & ~is_passed
    end = best + int(np.argmax(is_worse[best:])) if is_worse[best:].any() else len(below)
    return int(np.flatnonzero(~is_passed[:end])[-1]), error
