"""How near models are to the truth, estimated from two halves of the data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.reconstruction.model.relative_intensity import half_correlation

# Shells whose expected correlation with the truth is above this are known; others say nothing about a blur.
_KNOWN = 0.8


@dataclass(frozen=True, eq=False)
class Halves:
    """The models of the two halves of the data.

    models : (2, n, n, n), filtered or not.  Half 0 and half 1 are the same frames in all models compared.
    correlation : (shells + 1,) of the halves, corrected for the filter: halves filtered in the same way agree
        about more than their frames say.
    """

    models: Array
    correlation: NDArray[np.float64]


def gain_in_nearness(blurred: Halves, sharp: Halves, exposure: Array, last_shell: int) -> float:
    """By how much better a sharp model is expected to correlate with the truth than a blurred one.

    The mean over the shells that either of them knows; 0 if there are none.

    exposure : (n, n, n), weights of the voxels.
    last_shell : up to which pixels reach; the few photons beyond it correlate by chance.
    """
    old, new = correlation_with_truth(blurred, sharp, exposure)
    known = np.maximum(old, new) > _KNOWN
    known[:2] = known[last_shell + 1 :] = False  # the centre and its neighbours are a few voxels
    return float((new - old)[known].mean()) if known.any() else 0.0


def correlation_with_truth(
    blurred: Halves, sharp: Halves, exposure: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how much each model of all frames is expected to correlate with the truth, each (shells + 1,).

    If two halves differ only by noise and correlate by c, their common model correlates with the truth by
    sqrt(2 c / (1 + c)).  A blur that is the same in both halves does not show in c.  It shows if a blurred
    half is compared with a sharp one: their correlation over sqrt(c c') is that of both models without noise.

    These numbers are only for comparing the two models, not for claims.  Inner shells look better than they
    are, because halves orient each other's frames.  And the blur is somewhat underestimated, in favour of the
    old model, because the frames of the sharp half were oriented by the blurred model it is compared with.
    """
    own = [half_correlation(each.models[0], each.models[1], exposure) for each in (blurred, sharp)]
    across = [half_correlation(blurred.models[h], sharp.models[1 - h], exposure) for h in range(2)]
    both = np.sqrt(np.clip(own[0], 0.0, 1.0) * np.clip(own[1], 0.0, 1.0))
    blur = np.ones(len(both))  # no blur is assumed in shells in which a half shows nothing
    np.divide(np.mean(across, axis=0), both, out=blur, where=both > 0)
    return _of_all_frames(blurred.correlation) * np.clip(blur, 0.0, 1.0), _of_all_frames(sharp.correlation)


def _of_all_frames(correlation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlation of a model of all frames with the truth, from the correlation of its halves."""
    signal = np.clip(correlation, 0.0, 1.0)
    return np.asarray(np.sqrt(2 * signal / (1 + signal)))
