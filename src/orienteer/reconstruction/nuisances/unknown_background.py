"""Estimate an unmeasured background: what does not turn with the particle, and what is never dark.

The mean of a pixel over frames of all orientations is the radial mean of the particle plus the background.
What varies around a ring must therefore be background; this is known before the first iteration.  A
background that is the same all around looks like a part of the particle.  But speckles have dark places
between them: if a merged model is nowhere dark on a shell and its neighbours, its lowest values there are
background.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.shells import shell_index

_SECTORS = 16
# Photons in a sector of a ring, which give its mean to 3 %.
_PHOTONS_PER_SECTOR = 1000.0
# Standard errors by which a pixel must be brighter than its sector to count as hot.
_HOT = 5.0
# Quantile of a shell that counts as its darkest value; range of radius, in speckles, over which the least of
# these is taken.
_DARKEST, _SPECKLES_AROUND = 0.02, 3.0


def uneven_background(
    q_inv_A: NDArray[Any], correction: NDArray[Any], photons: NDArray[Any], n_frames: NDArray[Any]
) -> NDArray[np.float64]:
    """Background photons per shot at every pixel, (U,), such that the rest is the same all around each ring.

    q_inv_A : (U, 3); correction : (U,); photons : (U,) of all frames; n_frames : (U,) frames of each pixel.
    """
    exposure = correction * np.maximum(n_frames, 1e-12)
    length = np.linalg.norm(q_inv_A, axis=1)
    angle = np.arctan2(q_inv_A[:, 1], q_inv_A[:, 0])
    sector = np.minimum(((angle / (2 * np.pi) + 0.5) * _SECTORS).astype(np.int64), _SECTORS - 1)
    level = np.zeros(len(length))
    order = np.argsort(length, kind="stable")
    wanted = _PHOTONS_PER_SECTOR * _SECTORS
    ring_of = np.minimum(
        (np.cumsum(photons[order]) / wanted).astype(np.int64), max(int(photons.sum() / wanted) - 1, 0)
    )
    for ring in np.unique(ring_of):
        pixels = order[ring_of == ring]
        total = np.bincount(sector[pixels], photons[pixels], _SECTORS)
        exposed = np.bincount(sector[pixels], exposure[pixels], _SECTORS)
        some = exposed > 0.25 * exposed.max()
        rate = np.where(some, total / np.where(some, exposed, 1.0), total.sum() / exposed.sum())
        # The darkest of many sectors is darker than the true level by chance.
        darkest = rate[some].min() * (1 + 2 / np.sqrt(max(total[some].min(), 1.0)))
        own = photons[pixels] / exposure[pixels]
        expected = rate[sector[pixels]]
        error = np.sqrt(np.maximum(expected, 1e-30) / exposure[pixels])
        rates = np.where(own > expected + _HOT * error, own, expected)
        level[pixels] = np.maximum(rates - darkest, 0.0)
    return np.asarray(level * correction)


def even_share(
    model: NDArray[Any], profile: NDArray[Any], voxels_per_speckle: float, n_known: int
) -> NDArray[np.float64]:
    """Share of the radial mean of every shell that is never dark, and so is background, (shells,).

    model : (n, n, n) intensity relative to the radial mean.
    profile : (shells,) radial mean, in photons for unit correction.
    n_known : shells in which the model shows speckles and not noise.
    """
    index = shell_index(len(model))
    n = min(int(index.max()) + 1, len(profile), n_known)
    share = np.zeros(len(profile))
    if n < 2:
        return share
    lowest = np.zeros(n)
    for shell in range(1, n):
        lowest[shell] = max(float(np.quantile(model[index == shell], _DARKEST)), 0.0)
    lowest[0] = lowest[1]
    never_dark = lowest * profile[:n]
    reach = max(1, round(_SPECKLES_AROUND * voxels_per_speckle))
    around = np.array([never_dark[max(0, s - reach) : s + reach + 1].min() for s in range(n)])
    share[:n] = np.minimum(around / np.maximum(profile[:n], 1e-300), 0.9)
    # Beyond the known shells, the background continues at its last value.
    share[n:] = np.minimum(around[-1] / np.maximum(profile[n:], 1e-300), 0.9)
    return share
