"""Supports: voxels in which the density may differ from 0.

The first support comes from the autocorrelation.  Later ones are the V brightest voxels of the blurred
density.  V is given and shrinks slowly to its final value, so a support can neither collapse nor grow without
limit, as it can with a threshold.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.phase.data import PhasingData
from orienteer.phase.half_grid import density_of, frequencies, transform_of
from orienteer.phase.state import PhaseState

# The first support is larger than the ellipsoid by this factor: the autocorrelation misses faint rims.
_FIRST_MARGIN = 1.15
# Halvings of the interval of brightness on the GPU; float32 resolves no more.
_HALVINGS = 26


def first_support(data: PhasingData) -> Array:
    """The ellipsoid of the autocorrelation around the voxel n // 2, (n, n, n) bool, on the data's device."""
    n, found = data.n, data.autocorrelation
    axis = (np.arange(n) - n // 2) * data.voxel_A
    square: Any = 0.0
    for direction, length in zip(found.axes, found.semi_axes_A, strict=True):
        along = direction[0] * axis[:, None, None] + direction[1] * axis[:, None] + direction[2] * axis
        square = square + (along / (_FIRST_MARGIN * length)) ** 2
    return to_device(square <= 1, data.device)


def blurred(density: Array, sigma: float) -> Array:
    """Densities (B, n, n, n) convolved with a Gaussian, periodically; sigma is its width in voxels."""
    xp = array_namespace(density)
    whole, half = frequencies(density.shape[-1])
    rate = 2 * (np.pi * sigma / density.shape[-1]) ** 2
    x, z = (xp.asarray(np.exp(-rate * axis**2).astype(np.float32)) for axis in (whole, half))
    return density_of(transform_of(density) * (x[:, None, None] * x[:, None] * z))


def brightest(values: Array, volume: NDArray[np.float64]) -> Array:
    """The ``volume`` (B,) brightest voxels of each start, (B, n, n, n) bool."""
    xp = array_namespace(values)
    flat = values.reshape(len(values), -1)
    number = np.clip(np.rint(volume), 1, flat.shape[1]).astype(np.int64)
    if not is_on_gpu(values):
        least = [np.partition(one, -k)[-k] for one, k in zip(flat, number, strict=True)]
        return (flat >= np.array(least, dtype=values.dtype)[:, None]).reshape(values.shape)
    # Bisect for the threshold: counting voxels above it reads the memory once, sorting reads it many times.
    low, high = flat.min(axis=1), flat.max(axis=1)
    wanted = xp.asarray(number)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = xp.count_nonzero(flat >= middle[:, None], axis=1) >= wanted
        low, high = xp.where(enough, middle, low), xp.where(enough, high, middle)
    return (flat >= low[:, None]).reshape(values.shape)


def update_support(state: PhaseState, estimate: Array, volume: NDArray[np.float64], sigma: float) -> None:
    """Set the supports to the brightest voxels of the blurred estimate, in place.

    estimate : (B, n, n, n) float32, densities that fit the data; negative values count as empty, or by their
        modulus if densities may be negative.
    volume : (B,) voxels of each support; sigma : of the blur in voxels.
    """
    xp = array_namespace(estimate)
    full = xp.maximum(estimate, 0) if state.positive else xp.abs(estimate)
    state.support[...] = brightest(blurred(full, sigma), volume)
