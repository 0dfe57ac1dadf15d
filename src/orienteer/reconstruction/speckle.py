"""The size of the particle from the size of its speckles."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.frame_store import FrameStore

# |3 j1(x) / x|^2 = 1/2 at x = pi D dq = 1.815: half width of the speckles of a ball of diameter D.
_HALF_WIDTH_OF_BALL = 1.815 / np.pi
_FRAMES, _PIXELS, _NEIGHBOURS = 1000, 1500, 400


def estimate_diameter(store: FrameStore, spacing_inv_A: float) -> float:
    """Diameter in A of a ball whose speckles are as wide as those of the frames; 0 when they do not tell.

    Counts of two pixels a distance dq apart rise and fall together over the frames as far as they lie in the
    same speckle; shot noise does not enter, since the pixels differ.
    """
    pixels = store.pixels
    frames = np.unique(np.linspace(0, store.n_frames - 1, min(_FRAMES, store.n_frames)).astype(np.int64))
    counts = store.batch(frames, np.arange(len(pixels)), len(pixels), "cpu", "dense").dense
    counts = np.asarray(counts, dtype=np.float32)
    total = counts.sum(axis=1)
    counts = counts[total > 0] / total[total > 0, None] * total[total > 0].mean()
    if len(counts) < 3:
        return 0.0
    mean = counts.mean(axis=0)
    # Where most photons of speckles are: not the central lobe, which is the same in all frames.
    variance = np.maximum(counts.var(axis=0) - mean, 0.0)
    bright = np.argsort(-variance / np.sqrt(np.maximum(mean, 1e-24)))[: max(_PIXELS, len(pixels) // 10)]
    chosen = np.random.default_rng(0).permutation(bright)[:_PIXELS]
    return _diameter_of(pixels.q_inv_A, counts - mean, mean, chosen, spacing_inv_A)


def choose_diameter(store: FrameStore, given_A: float) -> tuple[float, str]:
    """Diameter of the particle in A, and a remark where it is only a guess.

    given_A : what the user says; 0: nothing.
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
    found = estimate_diameter(store, spacing)
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
    edges = np.arange(0.5, 12.0, 0.5) * spacing
    together, alone = np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)
    for row, pixel in enumerate(chosen):
        others = neighbour[row, 1:]
        ring = np.searchsorted(edges, distance[row, 1:])
        products = deviation[:, others].T @ deviation[:, pixel] / len(deviation)
        together += np.bincount(ring, weights=products, minlength=len(edges) + 1)
        alone += np.bincount(ring, weights=mean[others] * mean[pixel], minlength=len(edges) + 1)
    correlation = together[1:-1] / np.maximum(alone[1:-1], 1e-30)
    middles = (edges[1:] + edges[:-1]) / 2
    seen = alone[1:-1] > 0
    correlation, middles = correlation[seen], middles[seen]
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
