"""The missing centre: how far it reaches, and how much a density may hide in it.

A smooth density inside the support, of any height, hides in the hole nearly whole.  Nothing drives phasing to
put one there, and nothing takes one away: so the amplitudes in the hole have a bound, and a loose one.
"""

import numpy as np
from numpy.typing import NDArray

from orienteer.phase.half_grid import radii, rounded_radii

# How far the amplitudes in the hole may exceed those of a body that is as bright around it.
_MARGIN = 1.5
# Share of a shell that must be measured for the hole to end there.
_SHELL_IS_MEASURED = 0.5
# Speckles around the hole that tell how steeply the intensity falls.
_RIM_SPECKLES = 1.5
# The softest body that has a diameter at all: a Gaussian of this standard deviation, in diameters.
_SOFTEST = 0.25


def hole_of_data(measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Unmeasured voxels nearer to q = 0 than the first shell that is measured by half and more."""
    shell = rounded_radii(len(measured))
    number = np.bincount(shell.ravel())
    share = np.bincount(shell.ravel(), weights=measured.ravel()) / np.maximum(number, 1)
    return np.asarray(~measured & (shell < int(np.argmax(share >= _SHELL_IS_MEASURED))))


def hole_bound(values: NDArray[np.float64], measured: NDArray[np.bool_], diameter_in_boxes: float) -> float:
    """The most that an amplitude in the hole may be.

    values : (n, n, n // 2 + 1), the intensity; measured : where it is known.
    diameter_in_boxes : diameter of the particle over the edge of the box.

    Of hard bodies of a diameter a ball hides the most.  Soft ones fall more steeply, as their first speckles
    show: as Guinier's law has it, the logarithm of the intensity falls with the square of q.
    """
    radius = radii(len(measured))[measured]
    own = np.maximum(values[measured], 0)
    u = np.maximum(np.pi * diameter_in_boxes * radius, 1e-3)
    ball = (3 * (np.sin(u) - u * np.cos(u)) / u**3) ** 2
    hard = own.sum() / ball.sum()
    return float(_MARGIN * np.sqrt(max(hard, _guinier(own, radius * diameter_in_boxes))))


def _guinier(values: NDArray[np.float64], q_diameter: NDArray[np.float64]) -> float:
    """The intensity at q = 0 by the fall of that around the hole; q in speckles."""
    first = float(q_diameter.min())
    rim = (q_diameter <= first + _RIM_SPECKLES) & (values > 0)
    if rim.sum() < 2:
        return 0.0
    square, logarithm = q_diameter[rim] ** 2, np.log(values[rim])
    fall = -np.cov(square, logarithm)[0, 1] / max(float(np.var(square, ddof=1)), 1e-300)
    fall = float(np.clip(fall, 0, (2 * np.pi * _SOFTEST) ** 2))
    return float(np.exp((logarithm + fall * square).mean()))
