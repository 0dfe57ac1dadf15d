"""CPU twin of ``relative_intensity``: means with the mirror image, and corrections, each in one pass."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray


def both_friedel(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means (n, n, n, 2) of sums at q and at -q; voxels without a mate, in an even cube, do not change."""
    sums = np.ascontiguousarray(sums)
    out = np.empty_like(sums)
    mirror(sums, out)
    return out


@njit(nogil=True, parallel=True, cache=True)
def mirror(sums, out):  # type: ignore[no-untyped-def]
    """out = means of sums and their point reflection; both (n, n, n, 2)."""
    n = len(sums)
    first = 1 - n % 2
    last = n - 1 + first
    for x in prange(n):
        for y in range(n):
            if x < first or y < first:
                out[x, y] = sums[x, y]
                continue
            line, image = sums[x, y], sums[last - x, last - y]
            for z in range(first):
                out[x, y, z] = line[z]
            for z in range(first, n):
                out[x, y, z, 0] = (line[z, 0] + image[last - z, 0]) / 2
                out[x, y, z, 1] = (line[z, 1] + image[last - z, 1]) / 2


def corrected(model: NDArray[np.float32], sums: NDArray[np.float64], prior: float) -> NDArray[np.float32]:
    """As ``relative_intensity.corrected``, for sums (n, n, n, 2)."""
    model, sums, n = np.ascontiguousarray(model), np.ascontiguousarray(sums), len(model)
    out = np.empty(model.shape, np.float32)
    correct(model.reshape(n, -1), sums.reshape(n, -1, 2), prior, out.reshape(n, -1))
    return out


@njit(nogil=True, parallel=True, cache=True)
def correct(model, sums, prior, out):  # type: ignore[no-untyped-def]
    """out = model + (excess + prior (1 - model)) / (expected + prior); model, out (planes, voxels)."""
    for x in prange(len(model)):
        for v in range(model.shape[1]):
            w = np.float64(model[x, v])
            out[x, v] = w + (sums[x, v, 0] + prior * (1 - w)) / (sums[x, v, 1] + prior)
