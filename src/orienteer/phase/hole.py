"""The missing centre (hole) of the data: its extent, and an upper bound of the amplitudes in it.

The hole hides nearly all of the power of a smooth density inside the support, whatever its height.  The data
neither produce such a density nor remove it, so amplitudes in the hole get a loose bound.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.half_grid import radii, rounded_radii

# Factor by which amplitudes in the hole may exceed those of a body that is as bright around the hole.
_MARGIN = 1.5
# Share of a shell that must be measured for the hole to end there.
_SHELL_IS_MEASURED = 0.5
# Width in speckles of the rim around the hole, from which the fall of the intensity is estimated.
_RIM_SPECKLES = 1.5
# Standard deviation, in diameters, of the softest body that still has a diameter: a Gaussian.
_SOFTEST = 0.25


def hole_of_data(measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Unmeasured voxels closer to q = 0 than the first shell of which at least half was measured."""
    shell = rounded_radii(len(measured))
    number = np.bincount(shell.ravel())
    share = np.bincount(shell.ravel(), weights=measured.ravel()) / np.maximum(number, 1)
    return np.asarray(~measured & (shell < int(np.argmax(share >= _SHELL_IS_MEASURED))))


def hole_bound(values: NDArray[np.float64], measured: NDArray[np.bool_], diameter_in_boxes: float) -> float:
    """The upper bound of an amplitude in the hole.

    values : (n, n, n // 2 + 1), the intensity; measured : where it is known.
    diameter_in_boxes : diameter of the particle over the edge of the box.

    Among hard bodies of one diameter, a ball hides the most.  The intensity of soft bodies falls more
    steeply.  How steeply is seen in the first speckles: by Guinier's law the logarithm of the intensity falls
    with the square of q.  The larger of both estimates counts.
    """
    radius = radii(len(measured))[measured]
    own = np.maximum(values[measured], 0)
    u = np.maximum(np.pi * diameter_in_boxes * radius, 1e-3)
    ball = (3 * (np.sin(u) - u * np.cos(u)) / u**3) ** 2
    hard = own.sum() / ball.sum()
    return float(_MARGIN * np.sqrt(max(hard, _guinier(own, radius * diameter_in_boxes))))


def _guinier(values: NDArray[np.float64], q_diameter: NDArray[np.float64]) -> float:
    """The intensity at q = 0, extrapolated from its fall around the hole; q in speckles."""
    first = float(q_diameter.min())
    rim = (q_diameter <= first + _RIM_SPECKLES) & (values > 0)
    if rim.sum() < 2:
        return 0.0
    square, logarithm = q_diameter[rim] ** 2, np.log(values[rim])
    fall = -np.cov(square, logarithm)[0, 1] / max(float(np.var(square, ddof=1)), 1e-300)
    fall = float(np.clip(fall, 0, (2 * np.pi * _SOFTEST) ** 2))
    return float(np.exp((logarithm + fall * square).mean()))
