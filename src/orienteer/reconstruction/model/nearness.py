"""How near models are to the truth, as far as two halves of the data can tell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.reconstruction.model.relative_intensity import half_correlation

# Shells that are expected to correlate with the truth by more are known; others say nothing about a blur.
_KNOWN = 0.8


@dataclass(frozen=True, eq=False)
class Halves:
    """A model by the two halves of the data.

    models : (2, n, n, n), each half of the same frames whatever it is compared with; filtered or not.
    correlation : (shells + 1,), of the halves before they were filtered: both are filtered in the same way,
        and then agree about more than their frames say.
    """

    models: Array
    correlation: NDArray[np.float64]


def gain_in_nearness(blurred: Halves, sharp: Halves, exposure: Array, last_shell: int) -> float:
    """By how much better a sharp model is expected to correlate with the truth than a blurred one.

    The mean over the shells that either of them knows; 0 where there are none.

    exposure : (n, n, n), by which voxels count.
    last_shell : up to which pixels reach; what lies beyond, a few photons put there, correlates by chance.
    """
    old, new = correlation_with_truth(blurred, sharp, exposure)
    known = np.maximum(old, new) > _KNOWN
    known[:2] = known[last_shell + 1 :] = False  # the centre and its neighbours are a few voxels
    return float((new - old)[known].mean()) if known.any() else 0.0


def correlation_with_truth(
    blurred: Halves, sharp: Halves, exposure: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how much each model of all frames is expected to correlate with the truth, each (shells + 1,).

    Two halves that differ by their noise alone, and correlate by c, make a model that correlates with the
    truth by sqrt(2 c / (1 + c)).  What is blurred in both halves does not show in c.  It shows where a
    blurred half is held against a sharp one: their correlation over sqrt(c c') is that of both models
    without noise.

    Both are compared with each other, and are no claims.  Inner shells look better than they are, since
    halves orient each other's frames; and since the frames of the sharp half were laid onto the blurred model
    that it is held against, the blur is somewhat underestimated, in favour of what there was.
    """
    own = [half_correlation(each.models[0], each.models[1], exposure) for each in (blurred, sharp)]
    across = [half_correlation(blurred.models[h], sharp.models[1 - h], exposure) for h in range(2)]
    both = np.sqrt(np.clip(own[0], 0.0, 1.0) * np.clip(own[1], 0.0, 1.0))
    blur = np.ones(len(both))  # where a half says nothing, nobody can tell
    np.divide(np.mean(across, axis=0), both, out=blur, where=both > 0)
    return _of_all_frames(blurred.correlation) * np.clip(blur, 0.0, 1.0), _of_all_frames(sharp.correlation)


def _of_all_frames(correlation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlation with the truth of a model of all frames, of whose halves this is the correlation."""
    signal = np.clip(correlation, 0.0, 1.0)
    return np.asarray(np.sqrt(2 * signal / (1 + signal)))
