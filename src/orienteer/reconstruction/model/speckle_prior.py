"""What is known of a model of faint frames before they say anything: it has speckles.

Frames that hardly know their pose give back the models that oriented them.  So the halves agree about far
more than is true, and what a filter takes from their agreement changes from iteration to iteration.  Speckles
are known to deviate from the mean of their shell by as much as that mean, and to be as large as the particle
makes them: of two points of the intensity that have nothing to do with each other the autocorrelation knows
nothing, and it ends at the diameter.  The step of EM towards the likeliest model under this prior keeps
S / (S + N) of what frames with known poses would say, where N is the noise of their photons alone.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.compute.fast_length import fast_length
from orienteer.reconstruction.model.autocorrelation import ShellFilter, numbers_at_distances
from orienteer.reconstruction.model.relative_intensity import n_shells_of, n_voxels_of_shells, shell_sums

# The diameter is known to about a tenth.
_ROOM = 1.1
# Power that no distance is without, so that a wrong diameter forbids nothing for good.
_LEAST_POWER = 1e-3
# Rms deviation from the mean of a shell.
_CONTRAST = 1.0


class SpecklePrior(ShellFilter):
    """The filter of a model of which nothing is known but the size of its speckles.

    exposure : (n, n, n), photons that the radial mean would have given, of all frames.
    speckle_voxels : across a speckle, 1 / (diameter * voxel).
    """

    def __init__(self, exposure: Array, speckle_voxels: float) -> None:
        per_voxel = shell_sums(exposure) / n_voxels_of_shells(exposure)
        super().__init__(
            np.full(n_shells_of(exposure), _CONTRAST),
            power_of_ball(len(exposure), speckle_voxels),
            1 / (np.maximum(per_voxel, 1e-9) * _CONTRAST**2),
        )


def power_of_ball(n: int, speckle_voxels: float) -> NDArray[np.float64]:
    """Mean power (distances,) of the autocorrelation of random density in a ball, its mean over the box 1.

    n : voxels along the edge of the intensity.
    At every distance there are as many products of densities as a ball and the ball moved by it share.
    """
    box = fast_length(n)
    number = numbers_at_distances(box)
    distance = np.arange(len(number)) * speckle_voxels / (box * _ROOM)
    shared = np.where(distance < 1, 1 - 1.5 * distance + 0.5 * distance**3, 0.0)
    shared[-1] = 0.0  # all that is beyond the inscribed ball
    power = shared + _LEAST_POWER
    return np.asarray(power * number.sum() / (power * number).sum())
