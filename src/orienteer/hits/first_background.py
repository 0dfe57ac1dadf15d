"""Find the empty shots among the first shots of a stream, before a background is known.

After N. Billor, A. S. Hadi and P. F. Velleman, BACON: blocked adaptive computationally efficient outlier
nominators, Comput. Stat. Data Anal. 34, 279 (2000): begin with shots that are certainly alike, learn how they
vary, accept all shots that vary in the same way, and learn again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from orienteer.detector.detector import Detector
from orienteer.hits.empirical_null import LEAST_SHARE, EmpiricalNull

N_GROUPS = 12
_ROUNDS = 20
# Share of empty shots that may be left out of the background.
_LEFT_OUT = 1e-3
# A shot is surely not empty if an empty one differs so much with less than this probability.
_SURE = 1e-6
# Radius within which a well imaged particle scatters most, as a part of the radius of the detector.
_FORM_RADIUS = 1 / 6
# The darkest shots are preferred to the usual ones as the empty ones if their scatter is this much smaller.
_TIGHTER = 0.85


def pixel_groups(n_pixels: int, used: NDArray[np.bool_], detector: Detector | None) -> NDArray[np.int64]:
    """The group (P,) of each pixel: rings around the beam with equally many pixels; -1 for unused pixels.

    Without a detector, groups of pixels that are stored next to each other.
    """
    pixels = np.flatnonzero(used)
    if detector is not None:
        pixels = pixels[np.argsort(np.linalg.norm(detector.ewald_vectors[pixels], axis=1), kind="stable")]
    group = np.full(n_pixels, -1, np.int64)
    group[pixels] = np.arange(len(pixels)) * N_GROUPS // max(len(pixels), 1)
    return group


def expected_form(used: NDArray[np.bool_], detector: Detector) -> NDArray[np.float64]:
    """Assumed form (P,) of a hit before any is known, with sum 1: particles scatter most to small angles."""
    radius = np.linalg.norm(detector.ewald_vectors, axis=1)
    radius /= max(float(radius[used].max(initial=0)), 1e-300)
    form = np.where(used, 1 / (1 + (radius / _FORM_RADIUS) ** 4), 0.0)
    return np.asarray(form / max(float(form.sum()), 1e-300))


def find_empty(sums: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which shots (N,) are very likely empty, and which are surely not.

    sums : (N, G) photons of each shot in groups of pixels.

    Strength and form of the background may vary from shot to shot; how they vary is learned from the shots.
    """
    n, n_groups = sums.shape
    photons = np.sqrt(np.maximum(sums.sum(axis=1), 0))
    distance = np.abs(EmpiricalNull.of(photons, 0.5).standardised(photons))
    least = min(max(3 * n_groups, int(LEAST_SHARE * n)), n)
    # Square roots of counts have the same variance in bright and dark groups.
    features = np.sqrt(np.maximum(sums, 0) + 3 / 8)
    usual = _grow(features, distance <= max(1.0, np.sort(distance)[least - 1]))
    # If there are many hits, or the background varies as much as hits do, only the darkest shots are alike.
    darkest = _grow(features, photons <= np.sort(photons)[least - 1])
    if darkest.n >= least and darkest.size < _TIGHTER * usual.size:
        usual = darkest
    return usual.distance < chdtri(n_groups, _LEFT_OUT), usual.distance > chdtri(n_groups, _SURE)


class _Core(NamedTuple):
    """A core of similar shots: squared distances (N,) of all shots from it, its number, and its scatter."""

    distance: NDArray[np.float64]
    n: int
    size: float


def _grow(features: NDArray[np.float64], core: NDArray[np.bool_]) -> _Core:
    """Accept all shots that vary like those of the core, and learn again, until nothing changes."""
    n_groups = features.shape[1]
    for _ in range(_ROUNDS):
        n = int(core.sum())
        # A covariance of few shots is uncertain: mix in that of counting noise alone, 1/4 for root counts.
        covariance = np.cov(features[core].T) * (n / (n + n_groups))
        covariance += np.eye(n_groups) * 0.25 * n_groups / (n + n_groups)
        offset = features - features[core].mean(axis=0)
        distance = np.einsum("ng,ng->n", offset @ np.linalg.inv(covariance), offset)
        # The uncertainty of mean and covariance makes other shots look farther away than they are.
        distance /= (1 + (n_groups + 1) / max(n - n_groups, 1) + 2 / max(n - 1, 1)) ** 2
        before, core = core, distance < chdtri(n_groups, _LEFT_OUT)
        if core.sum() <= n_groups or np.array_equal(core, before):
            break
    return _Core(distance, n, float(np.exp(np.linalg.slogdet(covariance)[1] / n_groups)))
