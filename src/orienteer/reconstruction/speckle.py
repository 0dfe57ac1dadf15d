"""The size of the particle from the size of its speckles."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.frame_store import FrameStore

# |3 j1(x) / x|^2 = 1/2 at x = pi D dq = 1.815: half width of the speckles of a ball of diameter D.
_HALF_WIDTH_OF_BALL = 1.815 / np.pi
_FRAMES, _PIXELS, _NEIGHBOURS = 1000, 1500, 400


def estimate_diameter(
    store: FrameStore, spacing_inv_A: float, background: NDArray[Any] | None = None,
    usable: NDArray[np.bool_] | None = None,
) -> float:  # fmt: skip
    """Diameter in A of a ball whose speckles are as wide as those of the frames; 0 when they do not tell.

    Counts of two pixels a distance dq apart rise and fall together over the frames as far as they lie in the
    same speckle; shot noise does not enter, since the pixels differ.

    background : (U,) photons per shot, taken off first; usable : (N,) bool, frames to look at.
    """
    pixels = store.pixels
    candidates = np.arange(store.n_frames) if usable is None else np.flatnonzero(usable)
    if not len(candidates):
        return 0.0
    places = np.linspace(0, len(candidates) - 1, min(_FRAMES, len(candidates))).astype(np.int64)
    frames = candidates[np.unique(places)]
    counts = store.batch(frames, np.arange(len(pixels)), len(pixels), "cpu", "dense").dense
    counts = np.asarray(counts, dtype=np.float32)
    behind = np.zeros(len(pixels), dtype=np.float32) if background is None else background.astype(np.float32)
    total = counts.sum(axis=1) - behind.sum()
    lit = total > 3 * np.sqrt(behind.sum())
    if lit.sum() < 3:
        return 0.0
    scale = (total[lit].mean() / total[lit])[:, None]
    noise = (counts[lit] * scale**2).mean(axis=0)
    counts = (counts[lit] - behind) * scale
    mean = counts.mean(axis=0)
    # Where most photons of speckles are: not the central lobe, which is the same in all frames.
    variance = np.maximum(counts.var(axis=0) - noise, 0.0)
    bright = np.argsort(-variance / np.sqrt(np.maximum(mean, 1e-24)))[: max(_PIXELS, len(pixels) // 10)]
    chosen = np.random.default_rng(0).permutation(bright)[:_PIXELS]
    return _diameter_of(pixels.q_inv_A, counts - mean, mean, chosen, spacing_inv_A)


def choose_diameter(
    store: FrameStore, given_A: float, background: NDArray[Any] | None = None,
    usable: NDArray[np.bool_] | None = None,
) -> tuple[float, str]:  # fmt: skip
    """Diameter of the particle in A, and a remark where it is only a guess.

    given_A : what the user says; 0: nothing.  background, usable : see :func:`estimate_diameter`.
    """
    spacing = store.pixels.spacing_inv_A
    largest = 1 / (1.5 * spacing)
    if given_A > 1 / spacing:
        return given_A, (
            f"a particle of {given_A:.0f} A has speckles smaller than a pixel; the pixels show those of "
            f"particles up to {1 / spacing:.0f} A."
        )
    if given_A:
        return given_A, ""
    found = estimate_diameter(store, spacing, background, usable)
    if found:
        return min(found, largest), ""
    return largest / 2, (
        f"the speckles do not tell the size of the particle; {largest / 2:.0f} A is assumed "
        "(diameter_A in the settings says better)."
    )


def _diameter_of(
    q: NDArray[Any], deviation: NDArray[Any], mean: NDArray[Any], chosen: NDArray[Any], spacing: float
) -> float:
    from scipy.spatial import KDTree

    distance, neighbour = KDTree(q).query(q[chosen], k=min(_NEIGHBOURS, len(q)))
    # Edges lie between the distances 1, 1.4, 2, 2.2 ... of pixels of a square lattice, never upon them.
    edges = np.arange(0.75, 12.0, 0.5) * spacing
    together, alone, weighted = (np.zeros(len(edges) + 1) for _ in range(3))
    for row, pixel in enumerate(chosen):
        others = neighbour[row, 1:]
        ring = np.searchsorted(edges, distance[row, 1:])
        products = deviation[:, others].T @ deviation[:, pixel] / len(deviation)
        light = mean[others] * mean[pixel]
        together += np.bincount(ring, weights=products, minlength=len(edges) + 1)
        alone += np.bincount(ring, weights=light, minlength=len(edges) + 1)
        weighted += np.bincount(ring, weights=light * distance[row, 1:], minlength=len(edges) + 1)
    # A ring of few dark pairs says nothing; the last has no outer edge.
    seen = np.flatnonzero(alone[:-1] > 1e-3 * alone.max())
    correlation, middles = together[seen] / alone[seen], weighted[seen] / alone[seen]
    if len(correlation) < 3 or not correlation[0] > 0:
        return 0.0
    # Height at zero distance by a parabola through the first two rings; shots of unequal size leave a floor.
    floor = max(float(np.min(correlation)), 0.0)
    a, b = correlation[0] - floor, correlation[1] - floor
    curvature = max((a - b) / (middles[1] ** 2 - middles[0] ** 2), 0.0)
    height = a + curvature * middles[0] ** 2
    below = np.flatnonzero(correlation - floor < height / 2)
    if not len(below):
        return 0.0
    i = int(below[0])
    if i == 0:
        return _HALF_WIDTH_OF_BALL / float(middles[0])
    x0, x1, y0, y1 = middles[i - 1], middles[i], correlation[i - 1] - floor, correlation[i] - floor
    return float(_HALF_WIDTH_OF_BALL / (x0 + (x1 - x0) * (y0 - height / 2) / max(y0 - y1, 1e-30)))
