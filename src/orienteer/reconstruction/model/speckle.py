"""The size of the particle: from its mean pattern, or from the size of speckles if the centre is hidden."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.model.pair_distances import diameter_from_profile

# Half width of a speckle at half its height, in 1 / extent.  It is 0.58 for a ball, and larger for particles
# that are long or dense in the middle.
_HALF_WIDTH = 0.70
# Largest distance of the innermost pixel from the centre, in speckles: for the size from the mean pattern to
# be used alone, and to be used beside that from the speckles.  Both may be too large; with the streaks of a
# virus by a factor of 2.
_TRUSTED_FROM, _USED_FROM = 0.5, 1.2
_FRAMES = 1000
# Pairs of pixels are compared within so many patches of so many neighbouring pixels.
_PATCHES, _PATCH_PIXELS = 40, 150
# A frame brighter than this many typical ones counts no more than they do: it may be something else.
_BRIGHT = 2.0
# Limits of the measured contrast, the relative variance of a pixel over orientations.
_LEAST_CONTRAST, _MOST_CONTRAST = 1e-4, 2.0


def estimate_diameter(
    store: FrameStore, spacing_inv_A: float, background: NDArray[Any] | None = None,
    usable: NDArray[np.bool_] | None = None,
) -> float:  # fmt: skip
    """Largest extent of the particle in A; 0 if it cannot be measured from the frames.

    background : (U,) photons per shot, subtracted first; usable : (N,) bool, frames that may be used.
    """
    pixels = store.pixels
    candidates = np.arange(store.n_frames) if usable is None else np.flatnonzero(usable)
    if not len(candidates):
        return 0.0
    places = np.linspace(0, len(candidates) - 1, min(_FRAMES, len(candidates))).astype(np.int64)
    frames = candidates[np.unique(places)]
    everything = np.arange(len(pixels))
    chosen = store.prepare(store.patterns_of_all(frames), everything, len(pixels), "cpu", "dense")
    counts = chosen.dense
    counts = np.asarray(counts, dtype=np.float32)
    behind = np.zeros(len(pixels), dtype=np.float32) if background is None else background.astype(np.float32)
    total = counts.sum(axis=1) - behind.sum()
    lit = total > 3 * np.sqrt(behind.sum())
    if lit.sum() < 3:
        return 0.0
    counts, total = counts[lit], total[lit]
    weight = np.minimum(1, _BRIGHT * np.median(total) / total)
    from_profile = diameter_from_profile(
        pixels.length_inv_A, counts, weight, pixels.correction, spacing_inv_A,
        None if background is None else behind,
    )  # fmt: skip
    innermost = float(pixels.length_inv_A.min())
    if 0 < innermost * from_profile < _TRUSTED_FROM:
        return from_profile
    from_speckles = _diameter_from_speckles(pixels.q_inv_A, counts, total, behind, spacing_inv_A)
    if 0 < innermost * from_profile < _USED_FROM:
        return min(from_profile, from_speckles or from_profile)
    return from_speckles


def choose_diameter(
    store: FrameStore, given_A: float, background: NDArray[Any] | None = None,
    usable: NDArray[np.bool_] | None = None,
) -> tuple[float, str]:  # fmt: skip
    """Diameter of the particle in A, and a remark if it is doubtful or only a guess.

    given_A : from the settings; 0: none.  background, usable : see :func:`estimate_diameter`.
    """
    spacing = store.pixels.spacing_inv_A
    largest = 1 / (1.5 * spacing)
    if given_A > 1 / spacing:
        return given_A, (
            f"a particle of {given_A:.0f} A has speckles smaller than a pixel; these pixels can show a "
            f"particle of up to {1 / spacing:.0f} A."
        )
    if given_A:
        return given_A, ""
    found = estimate_diameter(store, spacing, background, usable)
    if found:
        return min(found, largest), ""
    return largest / 2, (
        f"the size of the particle cannot be measured from these frames; {largest / 2:.0f} A is assumed. "
        "Set diameter_A if you know it."
    )


def _diameter_from_speckles(
    q: NDArray[Any], counts: NDArray[Any], total: NDArray[Any], behind: NDArray[Any], spacing: float
) -> float:
    """Extent in A of a particle whose speckles are as wide as those of the frames; 0: not measurable.

    Over the frames, the counts of two pixels rise and fall together to the extent that both lie in the same
    speckle.  Shot noise does not enter, because it is independent in different pixels.

    q : (U, 3); counts : (D, U); total : (D,) photons of the particle; behind : (U,) background.
    """
    from scipy.spatial import KDTree

    length = np.linalg.norm(q, axis=1)
    ring = np.floor(length / spacing).astype(np.int64)
    pixels_of_ring = np.maximum(np.bincount(ring), 1)
    share = np.maximum((counts - behind).sum(axis=0) / total.sum(), 0).astype(np.float32)
    level = ((np.bincount(ring, weights=share) / pixels_of_ring)[ring] + 1e-12).astype(np.float32)
    deviation = counts - behind - total[:, None] * share
    contrast = _contrast(ring, deviation, counts.mean(axis=0), share, total).astype(np.float32)
    typical = total.mean() * level
    information = (contrast / (contrast + (typical + behind) / typical**2)).astype(np.float64) ** 2
    draw = np.random.default_rng(0)
    seeds = draw.choice(
        len(q), min(_PATCHES, len(q)), replace=False, p=information / information.sum()
    )  # fmt: skip
    _, patches = KDTree(q).query(q[seeds], k=min(_PATCH_PIXELS, len(q)))
    # Edges lie between the distances 1, 1.4, 2, 2.2 ... of the pixels of a square lattice, never at one.
    edges = np.arange(0.75, 5.5, 0.5) * spacing
    sums = np.zeros((3, len(edges) + 1))
    for patch in patches:
        expected = total[:, None] * level[patch]
        # The relative deviation, weighted by the inverse of its variance from speckles and noise; and the
        # same product for two pixels that coincide.
        amplitude = np.sqrt(contrast[patch])
        sureness = amplitude * expected / ((amplitude * expected) ** 2 + expected + behind[patch])
        seen, whole = deviation[:, patch] * sureness, amplitude * expected * sureness
        distance = np.sqrt(((q[patch][:, None] - q[patch]) ** 2).sum(axis=-1))
        pair = np.triu_indices(len(patch), 1)
        products, heights = (seen.T @ seen)[pair], (whole.T @ whole)[pair]
        ring_of_pair = np.searchsorted(edges, distance[pair])
        for row, values in enumerate((products, heights, heights * distance[pair])):
            sums[row] += np.bincount(ring_of_pair, weights=values, minlength=len(edges) + 1)
    products, heights, distances = sums[:, :-1]
    known = heights > 1e-3 * heights.max()
    width = _half_width(distances[known] / heights[known], products[known] / heights[known], heights[known])
    return _HALF_WIDTH / width if width else 0.0


def _contrast(
    ring: NDArray[np.int64], deviation: NDArray[Any], mean: NDArray[Any], share: NDArray[Any],
    total: NDArray[Any],
) -> NDArray[np.float64]:  # fmt: skip
    """Variance of each pixel (U,) over orientations, relative to its squared mean, averaged over five rings.

    A nearly round particle has none near the centre, where most photons are.
    """
    beyond_noise = np.einsum("dp,dp->p", deviation, deviation) / len(deviation) - mean
    square = share.astype(np.float64) ** 2 * float((total.astype(np.float64) ** 2).mean())
    rings = [np.convolve(np.bincount(ring, weights=x), np.ones(5), "same") for x in (beyond_noise, square)]
    contrast = rings[0] / np.maximum(rings[1], 1e-300)
    return np.asarray(np.clip(contrast, _LEAST_CONTRAST, _MOST_CONTRAST)[ring])


def _half_width(distance: NDArray[Any], correlation: NDArray[Any], weight: NDArray[Any]) -> float:
    """Half width of the Gaussian curve that fits the correlations at these distances best; 0: none fits."""
    if len(distance) < 3:
        return 0.0
    widths = np.geomspace(0.8 * distance[0], 2 * distance[-1], 100)
    curves = 2.0 ** -((distance / widths[:, None]) ** 2)
    heights = (curves * weight * correlation).sum(axis=1) / (curves**2 * weight).sum(axis=1)
    misfit = (weight * (correlation - heights[:, None] * curves) ** 2).sum(axis=1)
    best = int(np.argmin(np.where(heights > 0, misfit, np.inf)))
    # At an end of the range the curve has no width.
    return float(widths[best]) if heights[best] > 0 and 0 < best < len(widths) - 1 else 0.0
