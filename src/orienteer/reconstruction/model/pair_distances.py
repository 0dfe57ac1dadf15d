"""The size of the particle from its mean pattern: how far apart its parts are.

The mean over all orientations is the pattern of a powder, I(q) = sum over distances r of p(r) sinc(2 q r).
The number p(r) of pairs of electrons that far apart is never negative and ends at the largest extent.  A
background that is flat is a pair distance of nought and does not disturb.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# This share of all pairs is nearer than _NEAR of the extent: 0.45 to 0.57 for two domains, a ball of blobs, a
# virus and a barrel; 0.68 for a solid ball, which therefore is taken for larger than it is.  Larger shares
# vary less from shape to shape, but shots of two particles at once bring pairs from beyond the extent.
_SHARE, _NEAR = 0.8, 0.53
# Pairs nearer than this part of the largest distance may be background.
_LEAST = 0.05
# Rings and corrections are not known better than this.
_RELATIVE_ERROR = 0.003
# Worse fits that are good enough: by standard deviations of the sum of squares, and by a share of it.
_FITTED, _FITTED_SHARE = 2.0, 0.1


def diameter_from_profile(
    length_inv_A: NDArray[Any], frames: NDArray[Any], weight: NDArray[Any], correction: NDArray[Any],
    spacing_inv_A: float, behind: NDArray[Any] | None = None,
) -> float:  # fmt: skip
    """Largest extent in A of the particle on these frames; 0 when they do not tell.

    The less of the centre is seen, the less it can be trusted; it is wrong by being too large.

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
    # What frames of equal brightness differ by is noise of their mean: few photons, and few orientations.
    total = photons.sum(axis=1, keepdims=True)
    noise = ((photons - total * seen / max(float(total.sum()), 1e-30)) ** 2).sum(axis=0)
    sigma = np.sqrt(noise + (_RELATIVE_ERROR * seen) ** 2 + 1e-12 * noise.max() + 1e-30)
    if not (seen > 3 * sigma).sum() > 3:
        return 0.0
    # Details finer than half the smallest period that the pixels show cannot be told.
    step = 1 / (2 * float(length_inv_A.max()))
    distance = np.arange(0.0, largest, step)
    waves = np.stack(
        [np.bincount(ring, weights=correction * np.sinc(2 * length_inv_A * r)) for r in distance]
    )
    pairs, misfit = _pair_distances(waves, seen, sigma)
    # Noise and single larger things put some pairs far apart; they are left out if few rings miss them.
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
    """Photons (D, G) of frames (D, U) in every ring; most pixels have none, and are not looked at."""
    n_rings = int(ring.max()) + 1
    frame, pixel = np.divmod(np.flatnonzero(frames), frames.shape[1])
    place, photons = frame * n_rings + ring[pixel], frames[frame, pixel]
    sums = np.bincount(place, weights=photons, minlength=len(frames) * n_rings)
    return sums.astype(np.float64, copy=False).reshape(-1, n_rings)


def _pair_distances(
    waves: NDArray[Any], seen: NDArray[Any], sigma: NDArray[Any]
) -> tuple[NDArray[np.float64], float]:
    """How many pairs are each distance apart, (R,), never negative, and the sum of squares that is left.

    waves : (R, G) what a pair at each distance gives in every ring.
    seen, sigma : (G,) photons of the rings and their error.
    """
    from scipy.optimize import nnls

    pairs, length = nnls((waves / sigma).T, seen / sigma, maxiter=50 * len(waves))
    return np.asarray(pairs), float(length) ** 2
