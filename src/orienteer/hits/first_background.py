"""Which of the first shots are empty, when no background is known yet.

After N. Billor, A. S. Hadi and P. F. Velleman, BACON: blocked adaptive computationally efficient outlier
nominators, Comput. Stat. Data Anal. 34, 279 (2000): begin with shots that are surely alike, learn how they
scatter, take in all that scatter so, and learn again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from orienteer.detector.detector import Detector
from orienteer.hits.empirical_null import LEAST_SHARE, EmpiricalNull

N_GROUPS = 12
_ROUNDS = 20
# One empty shot in a thousand may be left out of the background.
_LEFT_OUT = 1e-3
# A shot that differs so much is a hit, though nothing is known of hits yet.
_SURE = 1e-6
# Radius within which a particle scatters most, of that of the detector: any particle that is imaged well.
_FORM_RADIUS = 1 / 6
# Two groups of shots may both be the empty ones; the smaller is taken where it scatters by so much less.
_TIGHTER = 0.85


def pixel_groups(n_pixels: int, used: NDArray[np.bool_], detector: Detector | None) -> NDArray[np.int64]:
    """The group (P,) of each pixel: rings around the beam with as many pixels each; unused ones have -1.

    Without a detector, stretches of pixels that are stored side by side.
    """
    pixels = np.flatnonzero(used)
    if detector is not None:
        pixels = pixels[np.argsort(np.linalg.norm(detector.ewald_vectors[pixels], axis=1), kind="stable")]
    group = np.full(n_pixels, -1, np.int64)
    group[pixels] = np.arange(len(pixels)) * N_GROUPS // max(len(pixels), 1)
    return group


def expected_form(used: NDArray[np.bool_], detector: Detector) -> NDArray[np.float64]:
    """What a hit looks like (P,) before any is known, sum 1: particles scatter most to small angles."""
    radius = np.linalg.norm(detector.ewald_vectors, axis=1)
    radius /= max(float(radius[used].max(initial=0)), 1e-300)
    form = np.where(used, 1 / (1 + (radius / _FORM_RADIUS) ** 4), 0.0)
    return np.asarray(form / max(float(form.sum()), 1e-300))


def find_empty(sums: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which shots (N,) are surely empty, and which are surely not.

    sums : (N, G) photons of each shot in groups of pixels.

    Strength and form of a background may vary from shot to shot: how they do is learned from the shots.
    """
    n, n_groups = sums.shape
    photons = np.sqrt(np.maximum(sums.sum(axis=1), 0))
    distance = np.abs(EmpiricalNull.of(photons, 0.5).standardised(photons))
    least = min(max(3 * n_groups, int(LEAST_SHARE * n)), n)
    # Square roots of counts scatter alike in bright and dark groups.
    features = np.sqrt(np.maximum(sums, 0) + 3 / 8)
    usual = _grow(features, distance <= max(1.0, np.sort(distance)[least - 1]))
    # Where hits are many, or the background varies as much as hits do, only the darkest are surely alike.
    darkest = _grow(features, photons <= np.sort(photons)[least - 1])
    if darkest.n >= least and darkest.size < _TIGHTER * usual.size:
        usual = darkest
    return usual.distance < chdtri(n_groups, _LEFT_OUT), usual.distance > chdtri(n_groups, _SURE)


class _Core(NamedTuple):
    """Shots that are alike: squared distance (N,) of all shots from them, their number, and their scatter."""

    distance: NDArray[np.float64]
    n: int
    size: float


def _grow(features: NDArray[np.float64], core: NDArray[np.bool_]) -> _Core:
    """Take in all shots that scatter as those of the core do, and learn again, until nothing changes."""
    n_groups = features.shape[1]
    for _ in range(_ROUNDS):
        n = int(core.sum())
        # Few shots know little of how they scatter; a little of what photons do alone is added.
        covariance = np.cov(features[core].T) * (n / (n + n_groups))
        covariance += np.eye(n_groups) * 0.25 * n_groups / (n + n_groups)
        offset = features - features[core].mean(axis=0)
        distance = np.einsum("ng,ng->n", offset @ np.linalg.inv(covariance), offset)
        # What the core knows badly makes other shots look further away than they are.
        distance /= (1 + (n_groups + 1) / max(n - n_groups, 1) + 2 / max(n - 1, 1)) ** 2
        before, core = core, distance < chdtri(n_groups, _LEFT_OUT)
        if core.sum() <= n_groups or np.array_equal(core, before):
            break
    return _Core(distance, n, float(np.exp(np.linalg.slogdet(covariance)[1] / n_groups)))
