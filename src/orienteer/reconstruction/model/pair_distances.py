"""The size of the particle from its mean pattern: the largest distance between its parts.

The mean over all orientations is a powder pattern, I(q) = sum over distances r of p(r) sinc(2 q r).  The
number p(r) of pairs of electrons at a distance r is never negative, and is 0 beyond the largest extent.  A
flat background looks like pairs at a distance of 0 and does no harm.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# This share of all pairs is nearer than _NEAR times the extent.  The factor is 0.45 to 0.57 for two domains,
# a ball of blobs, a virus and a barrel, and 0.68 for a solid ball, which is therefore taken for larger than
# it is.  It would vary less for a larger share, but shots of two particles add pairs beyond the extent.
_SHARE, _NEAR = 0.8, 0.53
# Pairs nearer than this share of the largest distance may be background.
_LEAST = 0.05
# Relative error of rings and corrections.
_RELATIVE_ERROR = 0.003
# A worse fit is good enough within so many standard deviations of the sum of squares, or this share of it.
_FITTED, _FITTED_SHARE = 2.0, 0.1


def diameter_from_profile(
    length_inv_A: NDArray[Any], frames: NDArray[Any], weight: NDArray[Any], correction: NDArray[Any],
    spacing_inv_A: float, behind: NDArray[Any] | None = None,
) -> float:  # fmt: skip
    """Largest extent in A of the particle in these frames; 0 if it cannot be measured.

    The more of the centre is hidden, the less reliable it is; it is then too large.

    length_inv_A : (U,) distance of each pixel from the centre; spacing_inv_A : between neighbours.
    frames : (D, U) photons; weight : (D,) how much each frame counts.
    correction : (U,) sensitivity of the pixels.
    behind : (U,) photons of the background in every frame; None: there are none.
    """
    largest = 1 / (1.2 * spacing_inv_A)
    ring = np.floor(2 * length_inv_A / spacing_inv_A).astype(np.int64)
    _, ring = np.unique(ring, return_inverse=True)
    photons = _in_rings(frames, ring)
    if behind is not None:
        photons -= np.bincount(ring, weights=behind)
    photons *= weight[:, None]
    seen = photons.sum(axis=0)
    # The scatter of frames of equal brightness gives the error of their mean, from photons and orientations.
    total = photons.sum(axis=1, keepdims=True)
    noise = ((photons - total * seen / max(float(total.sum()), 1e-30)) ** 2).sum(axis=0)
    sigma = np.sqrt(noise + (_RELATIVE_ERROR * seen) ** 2 + 1e-12 * noise.max() + 1e-30)
    if not (seen > 3 * sigma).sum() > 3:
        return 0.0
    # Distances finer than half the smallest period that the pixels show cannot be distinguished.
    step = 1 / (2 * float(length_inv_A.max()))
    distance = np.arange(0.0, largest, step)
    waves = np.stack(
        [np.bincount(ring, weights=correction * np.sinc(2 * length_inv_A * r)) for r in distance]
    )
    pairs, misfit = _pair_distances(waves, seen, sigma)
    # Noise and a few larger objects add some pairs far apart; they are left out if the fit hardly suffers.
    allowed = misfit + max(_FITTED * np.sqrt(2 * len(seen)), _FITTED_SHARE * misfit)
    for n in np.unique(np.geomspace(4, len(distance), 24).astype(np.int64)).tolist():
        nearer, misfit = _pair_distances(waves[:n], seen, sigma)
        if misfit <= allowed:
            pairs = nearer
            break
    distance = distance[: len(pairs)]
    pairs[distance < _LEAST * distance[-1]] = 0
    if not pairs.sum() > 0:
        return 0.0
    return float(np.interp(_SHARE, np.cumsum(pairs) / pairs.sum(), distance)) / _NEAR


def _in_rings(frames: NDArray[Any], ring: NDArray[np.int64]) -> NDArray[np.float64]:
    """Photons (D, G) of frames (D, U) in every ring; only lit pixels, which are few, are added up."""
    n_rings = int(ring.max()) + 1
    frame, pixel = np.divmod(np.flatnonzero(frames), frames.shape[1])
    place, photons = frame * n_rings + ring[pixel], frames[frame, pixel]
    sums = np.bincount(place, weights=photons, minlength=len(frames) * n_rings)
    return sums.astype(np.float64, copy=False).reshape(-1, n_rings)


def _pair_distances(
    waves: NDArray[Any], seen: NDArray[Any], sigma: NDArray[Any]
) -> tuple[NDArray[np.float64], float]:
    """Number of pairs at each distance, (R,), never negative; and the sum of squared residuals of the fit.

    waves : (R, G) photons of a pair at each distance in every ring.
    seen, sigma : (G,) photons of the rings and their errors.
    """
    from scipy.optimize import nnls

    pairs, length = nnls((waves / sigma).T, seen / sigma, maxiter=50 * len(waves))
    return np.asarray(pairs), float(length) ** 2
