"""The half of Fourier space that determines a real density: (n, n, n // 2 + 1), in the order of the FFT.

A real density has F(-q) = conj(F(q)), so real FFTs keep only voxels with q_z >= 0.  Most of them stand for
two voxels of the whole grid, and sums over the grid have to count them twice.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.distances import distances
from orienteer.compare.shells import OUTSIDE, n_shells
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.grouped_sums import Groups
from orienteer.compute.machine import usable_cores
from orienteer.errors import OrienteerError

AXES = (-3, -2, -1)


def transform_of(density: Array) -> Array:
    """Fourier transform of real densities (..., n, n, n), as (..., n, n, n // 2 + 1) complex."""
    if is_on_gpu(density):
        if density.data.ptr % (2 * density.itemsize):
            # cuFFT reads aligned pairs of numbers; in a batch of odd cubes every other one is not aligned.
            density = density.copy()
        return array_namespace(density).fft.rfftn(density, axes=AXES)
    from scipy.fft import rfftn

    return rfftn(density, axes=AXES, workers=usable_cores())


def density_of(transform: Array) -> Array:
    """Real densities (..., n, n, n) of their transforms (..., n, n, n // 2 + 1)."""
    shape = (transform.shape[-2],) * 3
    if is_on_gpu(transform):
        return array_namespace(transform).fft.irfftn(transform, s=shape, axes=AXES)
    from scipy.fft import irfftn

    return irfftn(transform, s=shape, axes=AXES, workers=usable_cores())


def edge_of(half_grid: Array) -> int:
    """Voxels n along the edge of the whole grid; arrays that are not half of a cube are refused."""
    *_, n_x, n_y, n_half = half_grid.shape
    if n_x != n_y or n_half != n_x // 2 + 1:
        raise OrienteerError(f"{tuple(half_grid.shape)} is not the half (n, n, n // 2 + 1) of a cube.")
    return int(n_x)


def frequencies(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Whole periods per box along the first two axes, (n,), and along the halved one, (n // 2 + 1,).

    >>> frequencies(4)
    (array([ 0.,  1., -2., -1.]), array([0., 1., 2.]))
    """
    return np.round(np.fft.fftfreq(n, 1 / n)), np.arange(n // 2 + 1, dtype=np.float64)


@lru_cache(maxsize=2)
def radii(n: int) -> NDArray[np.float64]:
    """Distance of each voxel of the half-grid from q = 0 in voxels, (n, n, n // 2 + 1)."""
    radius = distances(*frequencies(n))
    radius.setflags(write=False)
    return radius


def rounded_radii(n: int) -> NDArray[np.int64]:
    """These distances, rounded: the number of the shell of each voxel, corners included."""
    return np.rint(radii(n)).astype(np.int64)


def voxel_counts(n: int) -> NDArray[np.float64]:
    """How many voxels of the whole grid each layer of the half stands for, (n // 2 + 1,): 1 or 2.

    >>> voxel_counts(4), voxel_counts(5)
    (array([1., 2., 1.]), array([1., 2., 2.]))
    """
    counts = np.full(n // 2 + 1, 2.0)
    counts[0] = 1.0
    if n % 2 == 0:
        counts[-1] = 1.0
    return counts


@lru_cache(maxsize=4)
def half_grid_shells(n: int) -> NDArray[np.int32]:
    """Shell of each voxel of the half-grid, (n, n, n // 2 + 1) int32: its rounded distance from q = 0.

    The shells are those of ``compare.shells``, one voxel thick; -1 beyond the last whole shell.
    """
    index = np.floor(radii(n) + 0.5).astype(np.int32)
    index[index >= n_shells(n)] = OUTSIDE
    index.setflags(write=False)
    return index


class ShellSums:
    """Sums of values on the half-grid over the shells of the whole grid; voxels are sorted only once.

    use : (n, n, n // 2 + 1) bool, voxels that count; those beyond the last whole shell never do.
    """

    def __init__(self, use: Array) -> None:
        xp: Any = array_namespace(use)
        n = edge_of(use)
        index = xp.asarray(half_grid_shells(n))
        self._chosen = use & (index != OUTSIDE)
        self._counts = xp.broadcast_to(xp.asarray(voxel_counts(n)), use.shape)[self._chosen]
        self._groups = Groups(index[self._chosen], n_shells(n))

    def __call__(self, values: Array) -> NDArray[np.float64]:
        """Sums (S,) of real values (n, n, n // 2 + 1)."""
        return np.asarray(self._groups.sums(values[self._chosen] * self._counts)[:, 0])


def shell_sums(values: Array, use: Array) -> Array:
    """Sums over the shells of the whole grid, (..., S) float64, of values given on the half-grid.

    values : (..., n, n, n // 2 + 1) real.
    use : (n, n, n // 2 + 1) bool, voxels that count.
    """
    xp: Any = array_namespace(values, use)
    sums_of = ShellSums(use)
    sums = np.stack([sums_of(one) for one in values.reshape(-1, *use.shape)])
    return xp.asarray(sums).reshape(*values.shape[:-3], sums.shape[-1])
