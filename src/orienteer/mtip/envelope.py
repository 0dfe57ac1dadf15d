"""The radial envelope of an intensity: its radial mean, smoothed over about the width of a speckle.

The envelope must change more slowly than the intensity that is divided by it.  Otherwise the transform of the
quotient does not end where the autocorrelation of the particle ends, and cannot be solved for.
"""

import numpy as np

from orienteer.reconstruction.model.radial_profile import RadialProfile

# Standard deviation of the smoothing in speckles.
_SMOOTHING = 0.7
_STEPS_PER_SPECKLE = 20


def envelope_of(profile: RadialProfile, diameter_A: float) -> RadialProfile:
    """The profile of a particle of this diameter, smoothed on a logarithmic scale; even about the centre."""
    from scipy.ndimage import gaussian_filter1d

    edge = float(profile.radius_inv_A[-1])
    n = max(2, int(np.ceil(edge * diameter_A * _STEPS_PER_SPECKLE)))
    radius = np.linspace(0, edge, n + 1)
    both = np.log(profile(np.abs(np.concatenate([-radius[:0:-1], radius]))))
    smooth = gaussian_filter1d(both, _SMOOTHING / diameter_A / radius[1], mode="nearest")
    return RadialProfile(radius, smooth[n:])
