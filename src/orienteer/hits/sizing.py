"""Size and brightness of each hit: those of the sphere that fits its radial profile best.

For each of many sizes, the most likely brightness is found.  The size is that of the largest likelihood, with
a parabola to interpolate between sizes.  Photons are Poisson, and the strength of the background may differ
from shot to shot.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.rings import Rings
from orienteer.hits.sphere import sphere_profiles, sphere_sizes

N_SIZES = 64
# Expected relative standard deviation of the strength of the background from shot to shot.
BACKGROUND_SPREAD = 0.1


class Sizes(NamedTuple):
    """The spheres that fit N hits best.

    size_A : (N,) diameter.
    brightness : (N,) photons of the particle on used pixels.
    background : (N,) strength of the background relative to its mean.
    fit_quality : (N,) about 1 if a sphere and counting noise explain the profile, otherwise less.
    """

    size_A: NDArray[np.float32]
    brightness: NDArray[np.float32]
    background: NDArray[np.float32]
    fit_quality: NDArray[np.float32]


class SphereSizing:
    """Spheres of all sizes that a detector can distinguish, ready to be fitted.

    spacing_inv_A : distance in 1/A between neighbouring pixels.
    """

    def __init__(self, rings: Rings, spacing_inv_A: float, n_sizes: int = N_SIZES) -> None:
        self.rings = rings
        self.diameters_A = sphere_sizes(rings.q_inv_A, spacing_inv_A, n_sizes)
        self.profiles = sphere_profiles(rings, self.diameters_A)

    def fit(self, photons: NDArray[np.float32], background: NDArray[np.float64]) -> Sizes:
        """The best sphere of each hit.

        photons : (N, G) in rings.
        background : (G,) expected photons in rings of a shot without a particle.
        """
        from orienteer.hits._sizing_numba import fit_spheres

        N, S = len(photons), len(self.diameters_A)
        ln_p, signal, factor = np.empty((3, N, S))
        precision = 1 / BACKGROUND_SPREAD**2
        fit_spheres(photons, self.profiles, background, precision, ln_p, signal, factor)
        best = ln_p.argmax(axis=1)
        frame = np.arange(N)
        f, g = signal[frame, best], factor[frame, best]
        expected = f[:, None] * self.profiles[best] + g[:, None] * background + 1e-9
        seen = np.maximum(photons, 0).astype(np.float64)
        logarithm = np.log(np.where(seen > 0, seen / expected, 1.0))
        deviance = 2 * (seen * logarithm - seen + expected).sum(axis=1)
        return Sizes(
            self._between(ln_p, best).astype(np.float32),
            f.astype(np.float32),
            g.astype(np.float32),
            (1 / np.maximum(deviance / max(photons.shape[1] - 2, 1), 1e-3)).astype(np.float32),
        )

    def _between(self, ln_p: NDArray[np.float64], best: NDArray[np.int64]) -> NDArray[np.float64]:
        """Diameter (N,) at the top of the parabola through the best size and its neighbours."""
        last = ln_p.shape[1] - 1
        frame, middle = np.arange(len(ln_p)), np.clip(best, 1, last - 1)
        below, at, above = (ln_p[frame, middle + step] for step in (-1, 0, 1))
        bend = np.minimum(below - 2 * at + above, -1e-12)
        shift = np.where(best == middle, np.clip((below - above) / (2 * bend), -0.5, 0.5), best - middle)
        ratio = self.diameters_A[1] / self.diameters_A[0]
        return np.asarray(self.diameters_A[middle] * ratio**shift)
