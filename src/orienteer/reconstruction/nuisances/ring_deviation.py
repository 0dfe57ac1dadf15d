"""Compare rings of frames with the model, to recognise faint frames of something else.

Pixel by pixel, a faint frame of something similar cannot be distinguished from one of the particle.  But its
radial profile deviates by the same factor in all pixels of a ring, so that the photons of a whole ring show
it.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.reconstruction.frames.frame_fit import (
    DenseFrames,
    expected_photons,
    log_mean,
    log_probability,
)

if TYPE_CHECKING:
    from orienteer.reconstruction.workspace import Workspace

_MOST_RINGS = 40
# Fewest frames from which the usual deviation can be learnt.
_FEWEST_FRAMES = 20
# Relative variances with which the rings of something else deviate from the model.
_DEVIATIONS = (0.1, 0.3)
# Median of the square of a standard normal number.
_MEDIAN_OF_SQUARE = 0.4549


class RingSums(NamedTuple):
    """Photons of frames in rings of scored pixels, (N, R) float32 each.

    seen : counted; expected : predicted by the model, with the background; signal : the same without it.
    """

    seen: NDArray[np.float32]
    expected: NDArray[np.float32]
    signal: NDArray[np.float32]


class Rings:
    """Adds up the photons of frames in rings of the scored pixels of a stage, a few frames at a time.

    sums : of N frames; 0 for frames that were not added.
    """

    def __init__(self, work: "Workspace", n_frames: int) -> None:
        self._work = work
        shell = work.shell[: work.n_scored]
        n_shells = int(shell.max()) + 1
        ring = shell * min(n_shells, _MOST_RINGS) // n_shells
        member = np.zeros((len(ring), int(ring.max()) + 1), dtype=np.float32)
        member[np.arange(len(ring)), ring] = 1
        self._of_ring = work.xp.asarray(member[:, member.any(axis=0)])
        self.sums = RingSums(*np.zeros((3, n_frames, self._of_ring.shape[1]), dtype=np.float32))

    def look(
        self, places: NDArray[np.int64], frames: DenseFrames, signal: Array, fluence: NDArray[np.float64]
    ) -> None:
        """Add up the photons of a few frames, and those that a signal (D, S) at unit fluence predicts."""
        expected = expected_photons(self._work, frames, signal, fluence)
        bright = signal * self._work.xp.asarray(fluence[:, None].astype(np.float32))
        for column, values in zip(self.sums, (frames.counts, expected, bright), strict=True):
            column[places] = to_numpy(values @ self._of_ring)


def ring_odds(sums: RingSums, learns: NDArray[np.bool_]) -> NDArray[np.float64]:
    """ln P(rings | particle) - ln P(rings | something whose radial profile deviates), (N,), in nats.

    learns : (N,) bool, frames from which the deviation of the particle itself is learnt, since the model is
        not perfect yet.  It is a median, which a few frames of something else hardly change.
    """
    if learns.sum() < _FEWEST_FRAMES:  # the usual deviation is unknown: no frame is rejected
        return np.full(len(learns), np.inf)
    seen, expected, signal = (array.astype(np.float64) for array in sums)
    square = (seen - expected)[learns] ** 2 / _MEDIAN_OF_SQUARE
    beyond_noise = (square - expected[learns]) / np.maximum(signal[learns], 1e-12) ** 2
    ordinary = np.maximum(np.median(beyond_noise, axis=0), 0.0)
    share = (signal / np.maximum(expected, 1e-30)) ** 2
    others = [log_probability(seen, expected, (ordinary + more) * share) for more in _DEVIATIONS]
    return np.asarray(log_probability(seen, expected, ordinary * share) - log_mean(others))
